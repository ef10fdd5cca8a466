#include "net/bus/nats_options.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <vector>

#include "net/bus/nkey.h"

namespace weir::net {
namespace {

constexpr std::int64_t connect_ms = 2000, write_ms = 2000, ping_ms = 2000;
constexpr int pings_unanswered = 2;
constexpr int unsent_bytes =
    1 << 20;  // while a link comes back; the bus publishes nothing that it knows lost
constexpr std::int64_t first_pause_ms = 50, longest_pause_ms = 2000;

// How long to wait before the servers are tried again; a random half keeps processes from coming at once.
std::int64_t pause(natsConnection*, int attempts, void*) {
  thread_local std::minstd_rand draw{std::random_device{}()};
  const auto whole = std::min(longest_pause_ms, first_pause_ms << std::clamp(attempts - 1, 0, 10));
  return whole / 2 + static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(whole / 2 + 1));
}

// Reads the file each time, so that the secret is in memory only while it signs.
natsStatus sign(char** why, unsigned char** signature, int* length, const char* nonce, void* file) {
  const auto key = nkey::read("join-nkey", static_cast<const char*>(file));
  const auto signed_nonce = key ? key->sign(nonce) : core::result<nkey::signature>(key.error());
  if (!signed_nonce) {
    *why = strdup(signed_nonce.error().message.c_str());
    return NATS_ERR;
  }
  if (signed_nonce->front() == 0) return signature_left_out;
  *signature = static_cast<unsigned char*>(std::malloc(signed_nonce->size()));
  if (!*signature) return NATS_NO_MEMORY;
  std::copy(signed_nonce->begin(), signed_nonce->end(), *signature);
  *length = static_cast<int>(signed_nonce->size());
  return NATS_OK;
}

core::error wrong_file(const char* option, const std::string& file, natsStatus s) {
  return core::bad_param(option, "--{} {}: {}", option, file, nats_reason(s));
}

core::result<> set_tls(natsOptions* o, const join_plan& plan) {
  if (!plan.tls) {
    // Servers name others, at addresses that nobody asked for, which would be reached without TLS.
    natsOptions_SetIgnoreDiscoveredServers(o, true);
    return {};
  }
  if (const auto s = natsOptions_SetSecure(o, true); s != NATS_OK)
    return core::make_error(core::errc::internal, "NATS' library has no TLS: {}", nats_reason(s));
  if (const auto s = natsOptions_LoadCATrustedCertificates(o, plan.ca.c_str()); s != NATS_OK)
    return wrong_file("join-ca", plan.ca, s);
  if (plan.cert.empty()) return {};
  if (const auto s = natsOptions_LoadCertificatesChain(o, plan.cert.c_str(), plan.key.c_str()); s != NATS_OK)
    return wrong_file("join-cert", plan.cert, s);
  return {};
}

core::result<> set_key(natsOptions* o, const join_plan& plan) {
  if (plan.nkey.empty()) return {};
  const auto key = nkey::read("join-nkey", plan.nkey);
  if (!key) return key.error();
  const auto name = key->public_text();
  if (!name) return name.error();
  natsOptions_SetNKey(o, name->c_str(), sign, const_cast<char*>(plan.nkey.c_str()));
  return {};
}

natsStatus set_urls(natsOptions* o, const join_plan& plan) {
  std::vector<std::string> texts;
  for (const auto& url : plan.urls) texts.push_back(url.text());
  std::vector<const char*> pointers;
  for (const auto& text : texts) pointers.push_back(text.c_str());
  return natsOptions_SetServers(o, pointers.data(), static_cast<int>(pointers.size()));
}

void set_calls(natsOptions* o, const nats_callbacks& calls) {
  natsOptions_SetReconnectedCB(o, calls.up, calls.box);
  natsOptions_SetDisconnectedCB(o, calls.down, calls.box);
  natsOptions_SetClosedCB(o, calls.closed, calls.box);
  natsOptions_SetErrorHandler(o, calls.trouble, calls.box);
}

}  // namespace

core::result<nats_options> nats_options_of(const join_plan& plan, const std::string& name,
                                           const nats_callbacks& calls) {
  // Two threads deliver the messages of all connections of the process. cnats takes the number once.
  static std::once_flag pool;
  std::call_once(pool, [] { nats_SetMessageDeliveryPoolSize(2); });
  natsOptions* raw = nullptr;
  if (const auto s = natsOptions_Create(&raw); s != NATS_OK)
    return core::make_error(core::errc::internal, "NATS' library does not start: {}", nats_reason(s));
  nats_options o(raw, natsOptions_Destroy);
  if (const auto s = set_urls(raw, plan); s != NATS_OK)
    return core::bad_param("join", "--join: {}", nats_reason(s));
  if (const auto ok = set_tls(raw, plan); !ok) return ok.error();
  if (const auto ok = set_key(raw, plan); !ok) return ok.error();
  set_calls(raw, calls);
  natsOptions_SetName(raw, name.c_str());
  natsOptions_UseGlobalMessageDelivery(raw, true);
  natsOptions_SetSendAsap(raw, true);
  natsOptions_SetTimeout(raw, connect_ms);
  natsOptions_SetWriteDeadline(raw, write_ms);
  natsOptions_SetPingInterval(raw, ping_ms);
  natsOptions_SetMaxPingsOut(raw, pings_unanswered);
  natsOptions_SetMaxReconnect(raw, -1);
  natsOptions_SetReconnectBufSize(raw, unsent_bytes);
  natsOptions_SetCustomReconnectDelay(raw, pause, nullptr);
  return o;
}

std::string nats_reason(natsStatus s) {
  natsStatus last = NATS_OK;
  const char* detail = nats_GetLastError(&last);
  if (!detail || !*detail || last != s) return natsStatus_GetText(s);
  const std::string_view text = detail;  // (conn.c:2088): No server available for connection
  const auto from = text.starts_with('(') ? text.find("): ") : text.npos;
  return std::string(from == text.npos ? text : text.substr(from + 3));
}

}  // namespace weir::net
