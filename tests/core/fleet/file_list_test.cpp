// Lists of a model's text files, and the frames that carry pieces of these.
#include "core/fleet/file_list.h"

#include <catch2/catch.hpp>

#include "core/fleet/file_frame.h"
#include "core/fleet/fleet_board.h"

namespace weir::tests::file_list_test {
namespace {

using namespace core::fleet;

sha256_bytes sum_of(std::uint8_t n) {
  sha256_bytes s{};
  s.fill(n);
  return s;
}

file_list of_directory() {
  file_list l;
  l.files = {{"config.json", 100, 0, sum_of(1)},
             {"tokenizer.json", 0, 0, sum_of(2)},
             {"additional_chat_templates/rag.jinja", 7, 0, sum_of(3)}};
  return l;
}

file_list of_gguf() {
  file_list l;
  l.gguf_size = 10'000;
  l.files = {{"model.gguf", 4000, 0, sum_of(1)}, {"rope_freqs.weight", 256, 9744, sum_of(2)}};
  return l;
}

bool is_refused(const file_list& l, core::errc code = core::errc::invalid_param) {
  const auto read = read_file_list(bytes_of(l));
  return !read && read.error().code == code && !check_file_list(l);
}

}  // namespace

TEST_CASE("a list of files comes out as it went in, and no part of one is a list") {
  file_list made;
  made.made_of = "random:tiny-110m:bf16";
  for (const auto& l : {of_directory(), of_gguf(), made}) {
    const auto bytes = bytes_of(l);
    const auto read = read_file_list(bytes);
    REQUIRE(read.has_value());
    CHECK(bytes_of(*read) == bytes);
    REQUIRE(read->files.size() == l.files.size());
    for (std::size_t i = 0; i < l.files.size(); ++i) {
      CHECK(read->files[i].name == l.files[i].name);
      CHECK(read->files[i].size == l.files[i].size);
      CHECK(read->files[i].at == l.files[i].at);
      CHECK(read->files[i].sum == l.files[i].sum);
    }
    for (std::size_t n = 0; n < bytes.size(); ++n) CHECK(!read_file_list(bytes.substr(0, n)));
    CHECK(!read_file_list(bytes + '\0'));
  }
}

TEST_CASE("a list names files of the fixed set alone, each once and in order") {
  for (const char* name : {"../config.json", "/etc/passwd", "model.safetensors", "config.json/", "",
                           "model.gguf", "additional_chat_templates/../x.jinja", "rope_freqs.weight"}) {
    auto l = of_directory();
    l.files[1].name = name;
    CHECK(is_refused(l));
  }
  auto l = of_directory();
  l.files[1].name = "config.json";
  CHECK(is_refused(l));
  l = of_directory();
  std::swap(l.files[1], l.files[2]);
  CHECK(is_refused(l));
  l = of_directory();
  l.files.erase(l.files.begin());  // a model has a configuration
  CHECK(is_refused(l));
  l.files.clear();
  CHECK(is_refused(l));
  l = of_gguf();
  l.files[1].name = "output.weight";
  CHECK(is_refused(l));
}

TEST_CASE("a list keeps its bounds, and one whose files are too many bytes is refused as such") {
  auto l = of_directory();
  l.files[0].size = most_file_bytes - 7;
  CHECK(read_file_list(bytes_of(l)).has_value());
  l.files[0].size += 1;
  CHECK(is_refused(l, core::errc::does_not_fit));
  l.files[0].size = UINT64_MAX;
  CHECK(is_refused(l, core::errc::does_not_fit));
  l = of_directory();
  l.files[1].at = 1;
  CHECK(is_refused(l));
  l = of_gguf();
  l.files[1].at = 9745;
  CHECK(is_refused(l));
  l.files[1].at = UINT64_MAX;
  CHECK(is_refused(l));
  l = of_gguf();
  l.gguf_size = UINT64_MAX;
  CHECK(is_refused(l));
}

TEST_CASE("a model is made of a text that cannot be a path") {
  for (const char* fine : {"sim", "random:tiny-110m", "random:llama-3.2-1b:q8_0"}) CHECK(is_made(fine));
  for (const char* not_so :
       {"", "sim:script=/etc/passwd", "sim:rate=50", "random:../x", "random:a/b", "/models/x"}) {
    CHECK(!is_made(not_so));
    file_list l;
    l.made_of = not_so;
    CHECK(is_refused(l));
  }
  auto l = of_directory();
  l.made_of = "sim";
  CHECK(is_refused(l));
}

TEST_CASE("file_wish and file_part come out as they went in, and keep their bounds") {
  const file_wish w{sum_of(9), 3, 1 << 20};
  const auto wish = frame_of(w);
  const auto read = read_file_wish(wish);
  REQUIRE(read.has_value());
  CHECK(frame_of(*read) == wish);
  CHECK(read->at == 1 << 20);
  for (std::size_t n = 0; n < wish.size(); ++n) CHECK(!read_file_wish(wish.substr(0, n)));
  file_part p{sum_of(9), 3, 1 << 20, true, std::string(1000, 'x')};
  const auto part = frame_of(p);
  CHECK(part.size() <= p.bytes.size() + file_part_head);
  REQUIRE(read_file_part(part).has_value());
  CHECK(frame_of(*read_file_part(part)) == part);
  for (std::size_t n = 0; n < part.size(); ++n) CHECK(!read_file_part(part.substr(0, n)));
  CHECK(!read_file_part(wish));
  CHECK(!read_file_wish(part));
  p.there = false;
  CHECK(!read_file_part(frame_of(p)));
  p.there = true;
  p.bytes.assign(longest_file_part, 'x');
  CHECK(read_file_part(frame_of(p)).has_value());
  p.bytes += 'x';
  CHECK(!read_file_part(frame_of(p)));
}

TEST_CASE("a digest is written as 64 digits and read again, and a board has nothing else in its place") {
  const auto text = digest_text(sum_of(0xab));
  CHECK(text.size() == 64);
  CHECK(parse_digest(text) == sum_of(0xab));
  for (const auto& none :
       {std::string(), text.substr(1), text + "a", std::string(64, 'g'), std::string(64, 'A')})
    CHECK(!parse_digest(none));
  fleet_board b;
  b.worker = "wwwwwwww22222222";
  b.models.push_back({.name = "chat", .files = text});
  CHECK(read_board(json_of(b))->models.front().files == text);
  b.models.front().files = "../../etc/passwd";
  CHECK(read_board(json_of(b))->models.front().files.empty());
  CHECK(read_board(R"({"v":1,"o":"wwwwwwww22222222","state":"ready","models":[{"name":"chat"}]})")
            ->models.front()
            .files.empty());
}

}  // namespace weir::tests::file_list_test
