#include "net/page_assets.h"
#include "tests/support/source_dir.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

namespace weir::tests::page_assets_test {

using namespace weir::net;

TEST_CASE("page: every file of net/page is in the binary, byte for byte") {
  for (const char* name : {"index.html", "page.js", "style.css", "weir.js", "vendor/purify.min.js"}) {
    CAPTURE(name);
    std::ifstream file(weir::tests::source_dir().string() + "/net/page/" + name, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    const page_asset* asset = find_asset(std::string("/") + name);
    REQUIRE(asset);
    CHECK(asset->body == bytes.str());
    CHECK(asset->gzipped.starts_with("\x1f\x8b"));
    CHECK(asset->gzipped.size() < asset->body.size());
  }
  REQUIRE(find_asset("/"));
  CHECK(find_asset("/")->name == "index.html");
  CHECK(!find_asset("/nothing"));
  CHECK(!find_asset(""));
}

TEST_CASE("page: content types are those that browsers insist on") {
  CHECK(content_type_of("weir.js") == "text/javascript; charset=utf-8");
  CHECK(content_type_of("index.html") == "text/html; charset=utf-8");
  CHECK(content_type_of("style.css") == "text/css; charset=utf-8");
}

TEST_CASE("page: the short form goes to those who take it") {
  for (const char* takes : {"gzip", "deflate, gzip;q=0.1", "br,GZIP", "*", "*;q=0, gzip", "gzip; q=1.0"}) {
    CAPTURE(takes);
    CHECK(takes_gzip(takes));
  }
  for (const char* not_so : {"", "br", "gzip;q=0", "gzip; Q=0.000, *", "*;q=0", "gzipped", ",,;", "x-gzip"}) {
    CAPTURE(not_so);
    CHECK(!takes_gzip(not_so));
  }
}

}  // namespace weir::tests::page_assets_test
