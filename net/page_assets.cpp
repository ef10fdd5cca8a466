#include "net/page_assets.h"

namespace weir::net {

const page_asset* find_asset(std::string_view path) {
  std::string_view name = path == "/" ? "index.html" : path.substr(path.empty() ? 0 : 1);
  for (const page_asset& asset : page_assets()) {
    if (asset.name == name) return &asset;
  }
  return nullptr;
}

std::string_view content_type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

}  // namespace weir::net
