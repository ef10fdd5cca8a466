// sha256.h — SHA-256 of bytes that come in pieces.
//
// Thread safety: none.
#pragma once

#include <memory>
#include <string_view>

#include "core/fleet/file_list.h"

struct evp_md_ctx_st;

namespace weir::actors::fleet {

class sha256 {
 public:
  sha256();
  void add(std::string_view bytes);
  // Of all that was added; afterwards nothing was added yet.
  core::fleet::sha256_bytes take();

 private:
  struct freed {
    void operator()(evp_md_ctx_st* c) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, freed> now_;
};

core::fleet::sha256_bytes sha256_of(std::string_view bytes);

}  // namespace weir::actors::fleet
