#include "actors/fleet/sha256.h"

#include <openssl/evp.h>

#include <new>

namespace weir::actors::fleet {
namespace {

// OpenSSL's SHA-256 fails for want of memory alone.
void demand(int fine) {
  if (fine != 1) throw std::bad_alloc();
}

}  // namespace

void sha256::freed::operator()(evp_md_ctx_st* c) const noexcept { EVP_MD_CTX_free(c); }

sha256::sha256() : now_(EVP_MD_CTX_new()) {
  demand(now_ ? 1 : 0);
  demand(EVP_DigestInit_ex(now_.get(), EVP_sha256(), nullptr));
}

void sha256::add(std::string_view bytes) { demand(EVP_DigestUpdate(now_.get(), bytes.data(), bytes.size())); }

core::fleet::sha256_bytes sha256::take() {
  core::fleet::sha256_bytes out{};
  demand(EVP_DigestFinal_ex(now_.get(), out.data(), nullptr));
  demand(EVP_DigestInit_ex(now_.get(), EVP_sha256(), nullptr));
  return out;
}

core::fleet::sha256_bytes sha256_of(std::string_view bytes) {
  sha256 s;
  s.add(bytes);
  return s.take();
}

}  // namespace weir::actors::fleet
