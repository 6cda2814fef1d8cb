/* SPDX-License-Identifier: BSD-3-Clause */
/* What work.c needs of a way to send messages: two ranks, in two processes. Each file of transports/ is one.
 * Its best ways are asked for by the words that follow `--` on the command line, or by the environment, as
 * peers/ says. Whatever fails ends the process with a sentence. */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stddef.h>

typedef struct Transfer Transfer;

/* The command line, and where in it `--` stands, or its end. Returns this process's rank, 0 or 1. */
int transport_begin(int count, char** words, int own);
/* Memory as a program of this transport would take it for messages; never given back. */
void* transport_memory(size_t bytes);

/* Of the messages with one tag each receive takes the next. The memory must not be touched before it was
 * waited for; a transport that can only send in a call does so there. */
Transfer* transport_send(const void* data, size_t bytes, int tag);
Transfer* transport_receive(void* data, size_t bytes, int tag);
void transport_wait(Transfer* transfer);

void transport_end(void);

/* Of so many bytes, with malloc; ends the process where there is none. */
void* new_memory(size_t bytes);
/* Prints the sentence and ends the process. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char* format, ...);

#endif
