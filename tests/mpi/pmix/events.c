// SPDX-License-Identifier: BSD-3-Clause
// A rank tells all of something, with data, and each hears of it, whichever host it is on.
#include <pmix.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7;
static atomic_int heard;

static void hear(size_t handler, pmix_status_t status, const pmix_proc_t* source, pmix_info_t infos[],
                 size_t count, pmix_info_t results[], size_t result_count,
                 pmix_event_notification_cbfunc_fn_t done, void* argument) {
  (void)handler, (void)results, (void)result_count;
  int right = status == code && source->rank == 1, said = 0;
  for (size_t i = 0; i < count; ++i)
    said = said || (strcmp(infos[i].key, "word") == 0 && strcmp(infos[i].value.data.string, "tea") == 0);
  heard = right && said ? 1 : -1;
  if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, argument);
}

int main(void) {
  pmix_proc_t self;
  pmix_status_t wanted = code;
  pmix_info_t word;
  if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) return 1;
  if (PMIx_Register_event_handler(&wanted, 1, NULL, 0, hear, NULL, NULL) < 0) return 2;
  if (PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS) return 3;
  PMIX_INFO_LOAD(&word, "word", "tea", PMIX_STRING);
  if (self.rank == 1 && PMIx_Notify_event(code, &self, PMIX_RANGE_NAMESPACE, &word, 1, NULL, NULL) < 0)
    return 4;
  while (heard == 0) usleep(1000);
  if (PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS) return 5;
  printf("%s\n", heard == 1 ? "heard" : "not so");
  return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 6;
}
