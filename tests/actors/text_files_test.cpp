// The text files of a model at both ends of their way, and the way between: what is given, what is refused by
// name, and that a gateway's model is the worker's.
#include "actors/fleet/text_files.h"

#include <catch2/catch.hpp>

#include "actors/fleet/file_fetch.h"
#include "actors/gpu_owner.h"
#include "tests/actors/service_fixture.h"
#include "tests/support/converted_gguf.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::text_files_test {
namespace {

namespace fleet = actors::fleet;
namespace wire = core::fleet;
using files_ptr = std::shared_ptr<const fleet::text_files>;

files_ptr opened(const std::string& source) {
  auto f = fleet::text_files::open(source);
  if (!f) FAIL(f.error().message);
  return *f;
}

wire::file_part answer_of(const fleet::text_files& f, const wire::file_wish& w, std::size_t most = 1000) {
  auto bytes = f.read(w.file, w.at, most);
  return {w.digest, w.file, w.at, bytes.has_value(), bytes.value_or("")};
}

// All pieces, from one worker that gives `f`.
fleet::file_fetch fetched(const fleet::text_files& f) {
  fleet::file_fetch way("toy", f.digest(), {});
  for (int i = 0; i < 100'000; ++i) {
    const auto q = way.next({"a"});
    REQUIRE(q.has_value());
    if (way.take(answer_of(f, q->what))) return way;
  }
  FAIL("it never ends");
  return way;
}

fleet::far_model opened_from(const fleet::file_fetch& way) {
  actors::model_spec spec;
  spec.name = "toy";
  auto m = fleet::open_listed_model(way.list(), way.contents(), spec, {},
                                    std::make_shared<actors::system_time>(), nullptr);
  if (!m) FAIL(m.error().message);
  return *m;
}

fleet::far_model opened_here(const std::string& source) {
  actors::model_spec spec;
  spec.name = "toy";
  spec.source = source;
  auto m = fleet::open_far_model(spec, {}, std::make_shared<actors::system_time>(), nullptr);
  if (!m) FAIL(m.error().message);
  return *m;
}

void check_equal(const fleet::far_model& a, const fleet::far_model& b) {
  CHECK(fleet::digest_of(*a) == fleet::digest_of(*b));
  CHECK(a->context == b->context);
  CHECK(a->info.stop_ids == b->info.stop_ids);
  CHECK(a->name == b->name);
}

// Where temporary files go, for a while.
struct own_tmp {
  own_tmp() { ::setenv("TMPDIR", dir.path().c_str(), 1); }
  ~own_tmp() { ::unsetenv("TMPDIR"); }
  bool is_empty() const { return std::filesystem::is_empty(dir.path()); }
  temporary_dir dir;
};

bool is_refused(const std::string& source, core::errc code, const std::string& name) {
  const auto f = fleet::text_files::open(source);
  if (!f) INFO(f.error().message);
  return !f && f.error().code == code && f.error().message.find(name) != std::string::npos;
}

}  // namespace

TEST_CASE("text_files: the digest is that of names, sizes and contents, wherever the files lie") {
  const temporary_dir a, b;
  write_toy_directory(a.path());
  toy_options other_weights;
  other_weights.seed = 9;
  write_toy_directory(b.path(), other_weights);
  const auto first = opened(a.path().string())->digest();
  CHECK(opened(b.path().string())->digest() == first);
  CHECK(opened(a.path().string() + "/")->digest() == first);
  write_file(b.path() / "chat_template.jinja", "{{ messages }}");
  const auto with_template = opened(b.path().string())->digest();
  CHECK(with_template != first);
  write_file(b.path() / "chat_template.jinja", "{{ messages}} ");  // of the same size
  CHECK(opened(b.path().string())->digest() != with_template);
  write_file(b.path() / "README.md", "not read by anybody");
  std::filesystem::remove(b.path() / "chat_template.jinja");
  CHECK(opened(b.path().string())->digest() == first);
}

TEST_CASE(
    "text_files: a gateway opens from a directory's files what the worker has, and leaves none behind") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  std::filesystem::create_directory(dir.path() / "additional_chat_templates");
  write_file(dir.path() / "chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  write_file(dir.path() / "additional_chat_templates" / "tool_use.jinja", "{{ messages[0].content }}");
  const auto f = opened(dir.path().string());
  CHECK(f->list().files.size() == 6);
  const own_tmp tmp;
  check_equal(opened_from(fetched(*f)), opened_here(dir.path().string()));
  CHECK(tmp.is_empty());
}

TEST_CASE("text_files: of a GGUF file the header comes, and the tensors that are read with it") {
  const temporary_dir dir, at;
  write_toy_directory(dir.path());
  const auto file = at.path() / "toy.gguf";
  auto whole = gguf_conversion(dir.path()).write();
  std::string divisors;  // of which none may be 0, as what is not given is
  for (const float x : {1.0f, 1.5f, 2.0f, 8.0f}) divisors += raw(x);
  whole.tensor({"rope_freqs.weight", {4}, 0, divisors});
  whole.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  whole.texts("tokenizer.ggml.merges", {})
      .numbers("tokenizer.ggml.token_type", 5, std::vector<std::int32_t>(toy_vocab, 1));
  write_file(file, whole.file());
  const auto f = opened(file.string());
  REQUIRE(f->list().files.size() == 2);
  CHECK(f->list().gguf_size == std::filesystem::file_size(file));
  std::uint64_t given = 0;
  for (const auto& one : f->list().files) given += one.size;
  CHECK(given < f->list().gguf_size / 2);
  const own_tmp tmp;
  check_equal(opened_from(fetched(*f)), opened_here(file.string()));
  CHECK(tmp.is_empty());
}

TEST_CASE("text_files: a model without files is made of its name") {
  for (const char* source : {"random:tiny-110m", "sim"})
    check_equal(opened_from(fetched(*opened(source))), opened_here(source));
  check_equal(opened_from(fetched(*opened("sim:rate=7"))), opened_here("sim"));
  CHECK(is_refused("sim:script=/etc/passwd", core::errc::not_supported, "script"));
}

TEST_CASE("text_files: what gateways cannot open from a list is refused by name") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  const auto path = dir.path().string();
  write_file(dir.path() / "own.tiktoken", "aGVsbG8= 0\n");
  CHECK(is_refused(path, core::errc::not_supported, "own.tiktoken"));
  std::filesystem::remove(dir.path() / "own.tiktoken");
  std::filesystem::create_directory(dir.path() / "additional_chat_templates");
  write_file(dir.path() / "additional_chat_templates" / "own.jinja", "x");
  CHECK(is_refused(path, core::errc::not_supported, "own.jinja"));
  std::filesystem::remove_all(dir.path() / "additional_chat_templates");
  CHECK(fleet::text_files::open(path).has_value());
  std::filesystem::resize_file(dir.path() / "tokenizer.json", wire::most_file_bytes);
  CHECK(is_refused(path, core::errc::does_not_fit, "64 MiB"));
  CHECK(is_refused(dir / "none", core::errc::bad_file, "none"));
}

TEST_CASE("text_files: a file that has changed on disk is not what its digest says") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  const auto f = opened(dir.path().string());
  write_file(dir.path() / "config.json", std::string(f->list().files.front().size, ' '));
  fleet::file_fetch way("toy", f->digest(), {});
  for (;;) {
    const auto q = way.next({"a"});
    if (!q) break;
    REQUIRE(!way.take(answer_of(*f, q->what)));
  }
  REQUIRE(way.trouble().has_value());
  CHECK(way.trouble()->message.find("config.json") != std::string::npos);
}

TEST_CASE("file_fetch: lost, doubled and foreign answers change nothing, and a silent worker is left") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  const auto f = opened(dir.path().string());
  fleet::file_fetch way("toy", f->digest(), {});
  unsigned asked = 0;
  for (bool over = false; !over; ++asked) {
    const auto q = way.next({"a", "b"});
    REQUIRE(q.has_value());
    CHECK(q->worker == "a");
    REQUIRE(asked < 10'000);
    auto right = answer_of(*f, q->what, 500);
    auto other = right;
    other.at += 1;
    if (asked % 3 == 0) CHECK(!way.take(std::nullopt));
    if (asked % 3 == 1) CHECK(!way.take(other));
    over = way.take(right);
  }
  check_equal(opened_from(way), opened_here(dir.path().string()));
  fleet::file_fetch silent("toy", f->digest(), {});
  for (const char* worker : {"a", "a", "a", "b", "b", "b"}) {
    CHECK(silent.next({"a", "b"})->worker == worker);
    CHECK(!silent.take(std::nullopt));
  }
  CHECK(!silent.next({"a", "b"}));
  CHECK(silent.next({"a", "b", "c"})->worker == "c");
}

TEST_CASE("file_fetch: wrong bytes make the next worker be asked, and what was checked stays") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  const auto f = opened(dir.path().string());
  fleet::file_fetch way("toy", f->digest(), {});
  std::string last;
  bool over = false;
  for (unsigned asked = 0; !over && asked < 10'000; ++asked) {
    const auto q = way.next({"liar", "right"});
    REQUIRE(q.has_value());
    auto part = answer_of(*f, q->what, 500);
    if (q->worker == "liar" && q->what.file == 2 && !part.bytes.empty()) part.bytes.back() ^= 1;
    if (last == "liar" && q->worker == "right") {
      CHECK(q->what.file == 2);
      CHECK(q->what.at == 0);
      CHECK(way.trouble()->message.find("liar") != std::string::npos);
    }
    last = q->worker;
    over = way.take(part);
  }
  REQUIRE(over);
  CHECK(last == "right");
  check_equal(opened_from(way), opened_here(dir.path().string()));
}

TEST_CASE("file_fetch: a list that is too much, more bytes than it says, and a worker that is gone") {
  wire::file_list much;
  much.files = {{"config.json", wire::most_file_bytes + 1, 0, {}}};
  const auto bytes = wire::bytes_of(much);
  fleet::file_fetch way("toy", fleet::sha256_of(bytes), {});
  REQUIRE(way.next({"a"}).has_value());
  CHECK(!way.take(wire::file_part{way.digest(), 0, 0, true, bytes}));
  CHECK(!way.next({"a"}));
  CHECK(way.trouble()->code == core::errc::does_not_fit);

  const temporary_dir dir;
  write_toy_directory(dir.path());
  const auto f = opened(dir.path().string());
  fleet::file_fetch more("toy", f->digest(), {});
  for (auto q = more.next({"a"}); q && q->what.file == 0; q = more.next({"a"}))
    CHECK(!more.take(answer_of(*f, q->what)));
  const auto q = more.next({"a"});
  REQUIRE(q.has_value());
  CHECK(
      !more.take(wire::file_part{q->what.digest, 1, 0, true, std::string(f->list().files[0].size + 1, 'x')}));
  CHECK(!more.next({"a"}));

  fleet::file_fetch left("toy", f->digest(), {});
  CHECK(left.next({"a", "b"})->worker == "a");
  CHECK(left.next({"b"})->worker == "b");  // its board is gone
  left.lose_worker();
  CHECK(!left.next({"a", "b"}));
  CHECK(!left.take(answer_of(*f, {f->digest(), 0, 0})));
}

}  // namespace weir::tests::text_files_test
