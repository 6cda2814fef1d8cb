// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/info.hpp"

#include "fabric/address.hpp"
#include "parc/parc.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace parc::fabric {
namespace {

constexpr std::uint64_t any_tag_format = 0xaaaaaaaaaaaaaaaa; // all 64 bits are the program's

// One name of a list, as in "tcp,parc;ofi_rxm".
bool lists(std::string_view list, std::string_view name) {
  constexpr std::string_view separators = ",; ";
  while (!list.empty()) {
    const auto length = std::min(list.find_first_of(separators), list.size());
    if (list.substr(0, length) == name) return true;
    list.remove_prefix(std::min(length + 1, list.size()));
  }
  return false;
}

// An installed provider must not be picked by programs that have not asked for it: Open MPI would prefer it
// to its own TCP without a word. So it answers whoever names it: in the hints, or in the environment of those
// who filter afterwards (mpirun hands on what --mca says in these variables).
bool is_asked_for(const fi_info* hints) {
  if (hints && hints->fabric_attr && hints->fabric_attr->prov_name)
    return lists(hints->fabric_attr->prov_name, provider_name);
  if (const char* const own = std::getenv("PARC_FABRIC"); own && std::string_view(own) == "1") return true;
  for (const char* const variable :
       {"FI_PROVIDER", "OMPI_MCA_mtl_ofi_provider_include", "OMPI_MCA_opal_common_ofi_provider_include",
        "OMPI_MCA_btl_ofi_provider_include"}) {
    const char* const value = std::getenv(variable);
    if (value && value[0] != '^' && lists(value, provider_name)) return true;
  }
  return false;
}

// A sensible number to ask for: MPIs set memory aside by it. There may be more.
constexpr std::size_t most_at_once = std::size_t{1} << 16;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// Puts, gets and atomic operations of one endpoint on another take effect in their order, but that a get may
// see what was put behind it.
constexpr std::uint64_t remote_order = FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW |
                                       FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAW;

// Of each direction of transfers, what it can do; in this order.
void describe_transfers(fi_info& info, std::uint64_t out, std::uint64_t in, std::uint64_t order,
                        std::size_t remote_pieces) {
  *info.tx_attr = {.caps = out,
                   .mode = 0,
                   .op_flags = 0,
                   .msg_order = order,
                   .comp_order = FI_ORDER_NONE,
                   .inject_size = inject_bytes,
                   .size = most_at_once,
                   .iov_limit = max_pieces,
                   .rma_iov_limit = remote_pieces,
                   .tclass = 0};
  *info.rx_attr = {.caps = in,
                   .mode = 0,
                   .op_flags = 0,
                   .msg_order = order,
                   .comp_order = FI_ORDER_NONE,
                   .total_buffered_recv = 0,
                   .size = most_at_once,
                   .iov_limit = max_pieces};
}

// Of an endpoint for messages, for remote memory, or both.
struct Offer {
  std::uint64_t caps, order, send_flags;
  std::size_t remote_pieces;
};

constexpr Offer for_messages{capabilities, FI_ORDER_SAS, send_flags, 0};
constexpr Offer for_remote_memory{remote_capabilities, remote_order, send_flags & ~FI_REMOTE_CQ_DATA,
                                  max_pieces};
constexpr Offer for_both{capabilities | remote_capabilities, FI_ORDER_SAS | remote_order, send_flags,
                         max_pieces};

// None: a program that says nothing of what it wants may want all.
const Offer& offer_for(const fi_info* hints) {
  if (hints == nullptr) return for_both;
  if (!is_for_remote_memory(hints->caps)) return for_messages;
  return is_for_messages(hints->caps) ? for_both : for_remote_memory;
}

void describe(fi_info& info, const Offer& offer) {
  info.caps = offer.caps;
  constexpr std::uint64_t only_out = FI_SEND | FI_READ | FI_WRITE, only_in = FI_RECV | FI_MULTI_RECV |
                                                                             FI_DIRECTED_RECV | FI_SOURCE |
                                                                             FI_REMOTE_READ | FI_REMOTE_WRITE;
  describe_transfers(info, offer.caps & ~only_in, offer.caps & ~only_out, offer.order, offer.remote_pieces);
  if (!is_for_remote_memory(offer.caps)) return;
  info.ep_attr->max_order_raw_size = info.ep_attr->max_order_waw_size = longest_message;
  info.domain_attr->mr_mode = FI_MR_PROV_KEY;
  info.domain_attr->mr_key_size = sizeof(std::uint64_t);
  info.domain_attr->mr_cnt = most_at_once;
}

// What we have; none: no memory.
Info describe(const Offer& offer) {
  Info info(fi_allocinfo());
  if (!info) return info;
  info->addr_format = address_format;
  describe(*info, offer);
  info->ep_attr->type = FI_EP_RDM;
  info->ep_attr->protocol = protocol;
  info->ep_attr->protocol_version = 1;
  info->ep_attr->max_msg_size = longest_message;
  info->ep_attr->mem_tag_format = any_tag_format;
  info->ep_attr->tx_ctx_cnt = 1;
  info->ep_attr->rx_ctx_cnt = 1;
  fi_domain_attr& domain = *info->domain_attr;
  domain.name = strdup(provider_name);
  domain.threading = FI_THREAD_SAFE;
  domain.control_progress = FI_PROGRESS_AUTO;
  domain.data_progress = FI_PROGRESS_AUTO;
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.av_type = FI_AV_UNSPEC;
  domain.cq_data_size = sizeof(std::uint64_t);
  domain.cq_cnt = 1024;
  domain.ep_cnt = 1;
  domain.tx_ctx_cnt = 1;
  domain.rx_ctx_cnt = 1;
  domain.max_ep_tx_ctx = 1;
  domain.max_ep_rx_ctx = 1;
  domain.cntr_cnt = 1024;
  domain.caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
  fi_fabric_attr& fabric = *info->fabric_attr;
  fabric.name = strdup(provider_name);
  fabric.prov_version = provider.version;
  if (!domain.name || !fabric.name) return {};
  return info;
}

// Each says what it is about when it cannot be met.

const char* unmet(const fi_tx_attr& wanted, const Offer& offer) {
  if (wanted.caps & ~offer.caps) return "a capability of transmission";
  if (wanted.op_flags & ~offer.send_flags) return "a flag of transmission";
  if (wanted.msg_order & ~offer.order) return "an order of messages";
  if (wanted.comp_order != FI_ORDER_NONE) return "an order of completions";
  if (wanted.inject_size > inject_bytes) return "messages that long injected";
  if (wanted.size > most_at_once) return "that many sends at once";
  if (wanted.iov_limit > max_pieces) return "messages of so many pieces";
  return wanted.rma_iov_limit > offer.remote_pieces ? "remote memory access" : nullptr;
}

const char* unmet(const fi_rx_attr& wanted, const Offer& offer) {
  if (wanted.caps & ~offer.caps) return "a capability of reception";
  if (wanted.op_flags & ~receive_flags) return "a flag of reception";
  if (wanted.msg_order & ~offer.order) return "an order of messages";
  if (wanted.comp_order != FI_ORDER_NONE) return "an order of completions";
  if (wanted.size > most_at_once) return "that many receives at once";
  return wanted.iov_limit > max_pieces ? "messages of so many pieces" : nullptr;
}

const char* unmet(const fi_ep_attr& wanted) {
  if (wanted.type != FI_EP_UNSPEC && wanted.type != FI_EP_RDM) return "endpoints of another type than RDM";
  if (wanted.protocol != FI_PROTO_UNSPEC && wanted.protocol != protocol) return "another protocol";
  if (wanted.max_msg_size > longest_message) return "messages that long";
  if (wanted.tx_ctx_cnt > 1 || wanted.rx_ctx_cnt > 1) return "several or shared contexts";
  return wanted.auth_key_size != 0 ? "authorization keys" : nullptr;
}

const char* unmet(const fi_domain_attr& wanted) {
  if (wanted.name && std::strcmp(wanted.name, provider_name) != 0) return "another domain";
  if (wanted.cq_data_size > sizeof(std::uint64_t)) return "that much remote data";
  if (wanted.ep_cnt > 1) return "several endpoints";
  if (wanted.caps & ~(FI_LOCAL_COMM | FI_REMOTE_COMM)) return "a capability of domains";
  return wanted.max_ep_stx_ctx || wanted.max_ep_srx_ctx ? "shared contexts" : nullptr;
}

const char* unmet(const fi_fabric_attr& wanted) {
  return wanted.name && std::strcmp(wanted.name, provider_name) != 0 ? "another fabric" : nullptr;
}

// Keys are drawn at random: who could choose them, could guess them.
const char* unmet_by_remote_memory(const fi_info& hints) {
  const int mode = hints.domain_attr ? hints.domain_attr->mr_mode : 0;
  return (mode & FI_MR_PROV_KEY) == 0 ? "keys of memory that the program chooses" : nullptr;
}

const char* unmet(const fi_info& hints) {
  const bool remote = is_for_remote_memory(hints.caps);
  const Offer& offer = offer_for(&hints);
  if (hints.caps & ~offer.caps) return "a capability";
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != address_format)
    return "another format of addresses";
  const char* why = nullptr;
  if (hints.tx_attr) why = unmet(*hints.tx_attr, offer);
  if (!why && hints.rx_attr) why = unmet(*hints.rx_attr, offer);
  if (!why && remote) why = unmet_by_remote_memory(hints);
  if (!why && hints.ep_attr) why = unmet(*hints.ep_attr);
  if (!why && hints.domain_attr) why = unmet(*hints.domain_attr);
  if (!why && hints.fabric_attr) why = unmet(*hints.fabric_attr);
  return why;
}

// Where the program has said which of several ways it wants, that is its way.
void adapt(fi_info& info, const fi_info& hints) {
  info.handle = hints.handle;
  if (hints.caps) {
    std::uint64_t caps = hints.caps | FI_LOCAL_COMM | FI_REMOTE_COMM;
    constexpr std::uint64_t directions = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    if (is_for_remote_memory(caps)) caps |= (caps & directions) != 0 ? 0 : directions;
    if (is_for_messages(caps) && !(caps & (FI_SEND | FI_RECV))) caps |= FI_SEND | FI_RECV;
    info.caps = caps;
    info.tx_attr->caps &= caps;
    info.rx_attr->caps &= caps;
  }
  if (hints.tx_attr) {
    info.tx_attr->op_flags = hints.tx_attr->op_flags;
    if (hints.tx_attr->size) info.tx_attr->size = hints.tx_attr->size;
  }
  if (hints.rx_attr) {
    info.rx_attr->op_flags = hints.rx_attr->op_flags;
    if (hints.rx_attr->size) info.rx_attr->size = hints.rx_attr->size;
  }
  if (hints.ep_attr && hints.ep_attr->mem_tag_format)
    info.ep_attr->mem_tag_format = hints.ep_attr->mem_tag_format;
  if (!hints.domain_attr) return;
  if (hints.domain_attr->threading != FI_THREAD_UNSPEC)
    info.domain_attr->threading = hints.domain_attr->threading; // all are safe
  if (hints.domain_attr->av_type != FI_AV_UNSPEC) info.domain_attr->av_type = hints.domain_attr->av_type;
}

// libfabric frees it with the info.
bool set_destination(fi_info& info, const Address& address) {
  info.dest_addr = std::malloc(sizeof address);
  if (info.dest_addr == nullptr) return false;
  std::memcpy(info.dest_addr, &address, sizeof address);
  info.dest_addrlen = sizeof address;
  return true;
}

} // namespace

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info) {
  if (!is_asked_for(hints)) return -FI_ENODATA;
  if (hints)
    if (const char* const why = unmet(*hints)) {
      FI_INFO(&provider, FI_LOG_CORE, "parc does not have what is asked for: %s\n", why);
      return -FI_ENODATA;
    }
  // A port of this process's own, as fabtests name one, is no address here, and nothing to refuse either.
  const bool own_port = !node && (flags & FI_SOURCE) != 0;
  const auto named = node && !service && (flags & FI_SOURCE) == 0 ? Address::from(node) : std::nullopt;
  if ((node || service) && !named && !own_port && !(flags & FI_PROV_ATTR_ONLY)) {
    FI_INFO(&provider, FI_LOG_CORE,
            "parc's endpoints are not found by host and service, but by the addresses that they give\n");
    return -FI_ENODATA;
  }
  Info made = describe(offer_for(hints));
  if (!made) return -FI_ENOMEM;
  made->fabric_attr->api_version = version;
  if (hints) adapt(*made, *hints);
  if (named && !set_destination(*made, *named)) return -FI_ENOMEM;
  *info = made.release();
  return 0;
}

} // namespace parc::fabric
