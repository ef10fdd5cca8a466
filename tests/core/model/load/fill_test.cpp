// Weights from files into a device's memory by several readers: a backend of the host that takes uploads as a
// device does, later than it is told of them.
#include "core/model/load/fill.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <new>

#include "core/model/load.h"
#include "core/model/load/safetensors.h"
#include "tests/support/drive.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::fill_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

// A backend that copies an upload only when its lane is awaited, so that a source that changes too early is
// seen. A lane that is begun twice without a wait fails the test.
struct late_uploads {
  struct one {
    void* to;
    const void* from;
    std::uint64_t bytes;
  };
  std::map<unsigned, one> begun;
  std::size_t most_begun = 0, uploads = 0;
  std::function<void()> on_memory;
  kernels::backend table = *kernels::reference_backend();

  late_uploads() {
    table.self = this;
    table.do_allocate_host = [](void* self, std::uint64_t bytes) {
      if (auto& of = *static_cast<late_uploads*>(self); of.on_memory) of.on_memory();
      return ::operator new(bytes);
    };
    table.do_free_host = [](void*, void* at, std::uint64_t) { ::operator delete(at); };
    table.do_begin_upload = [](void* self, void* to, const void* from, std::uint64_t bytes, unsigned lane) {
      auto& of = *static_cast<late_uploads*>(self);
      REQUIRE(lane < kernels::backend::upload_lanes);
      REQUIRE(of.begun.emplace(lane, one{to, from, bytes}).second);
      of.most_begun = std::max(of.most_begun, of.begun.size());
      ++of.uploads;
    };
    table.do_await_upload = [](void* self, unsigned lane) {
      auto& of = *static_cast<late_uploads*>(self);
      const auto found = of.begun.find(lane);
      if (found == of.begun.end()) return;
      std::memcpy(found->second.to, found->second.from, found->second.bytes);
      of.begun.erase(found);
    };
  }
  std::shared_ptr<const kernels::backend> backend() const { return {std::shared_ptr<void>(), &table}; }
};

}  // namespace

TEST_CASE("several readers copy every element of every tensor, whatever their number and the slices' size") {
  for (const char* dtype : {"F32", "BF16", "F16"}) {
    tests::toy_options o;
    o.dtype = dtype;
    const tests::temporary_dir dir;
    tests::write_toy_directory(dir.path(), o);
    const auto from = open_safetensors(dir.path().string()).value();
    for (const unsigned readers : {0u, 1u, 2u, 5u, 30u}) {
      for (const std::uint64_t lane : {64u, 4096u, 1u << 20}) {
        // Each tensor twice, as it is and widened, poisoned first.
        std::deque<std::vector<std::byte>> memory;
        std::vector<placed> all;
        std::uint64_t total = 0, done = 0;
        for (const auto& [name, t] : from.tensors()) {
          const auto stored = *supported_type(t.dtype);
          const std::uint64_t elements = t.bytes.size() / kernels::size_of(stored);
          for (const auto type : {stored, kernels::dtype::f32}) {
            auto& at = memory.emplace_back(elements * kernels::size_of(type), std::byte{0xdb});
            total += at.size();
            all.push_back({at.data(),
                           {nullptr, type, 1, static_cast<std::uint32_t>(elements)},
                           false,
                           false,
                           {{elements, &t}}});
          }
        }
        late_uploads device;
        const auto ok = upload_slices(
            all, from, device.backend(), [&](std::uint64_t n) { done += n; }, readers, lane);
        REQUIRE(ok.has_value());
        CHECK(device.begun.empty());
        CHECK(done == total);
        if (lane == 64) CHECK(device.uploads >= total / lane);
        for (std::size_t i = 0; i < all.size(); ++i) {
          const stored_tensor& t = *all[i].pieces[0].from;
          const auto stored = *supported_type(t.dtype);
          std::vector<std::byte> wanted(memory[i].size());
          if (all[i].rows.type == stored) {
            std::ranges::copy(t.bytes, wanted.begin());
          } else {
            for (std::uint64_t e = 0; e < all[i].pieces[0].elements; ++e) {
              alignas(4) std::byte raw[4] = {};
              std::memcpy(raw, t.bytes.data() + e * kernels::size_of(stored), kernels::size_of(stored));
              const float x = kernels::load(raw, stored, 0);
              std::memcpy(wanted.data() + 4 * e, &x, 4);
            }
          }
          CAPTURE(dtype, readers, lane, i);
          REQUIRE(memory[i] == wanted);
        }
      }
    }
  }
}

TEST_CASE("a model that several readers loaded says what the one says that was put together on the host") {
  tests::toy_options o;
  o.dtype = "BF16";
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path(), o);
  late_uploads device;
  std::vector<std::vector<token_id>> out;
  for (const auto& b : {kernels::reference_backend(), device.backend()}) {
    std::uint64_t last = 0, total = 0;
    const auto m = load_model(dir.path().string(), b, [&](std::uint64_t done, std::uint64_t of) {
                     CHECK(done > last);
                     last = done;
                     total = of;
                   }).value();
    CHECK(last == total);
    m.weights->allocate_pages(2).value();
    const token_id prompt[] = {1, 2, 3};
    out.push_back(tests::greedy(*m.weights, prompt, 30, 3));
  }
  CHECK(out[0] == out[1]);
  CHECK(device.uploads > 10);
}

TEST_CASE("a file that is cut short while it is loaded is an error that names it, on both ways") {
  const tests::temporary_dir dir;
  const auto file = dir / "model.safetensors";
  late_uploads device;
  device.on_memory = [&] { std::filesystem::resize_file(file, 1000); };
  for (const bool several : {true, false}) {
    tests::write_toy_directory(dir.path());
    bool cut = several;
    const auto loaded =
        load_model(dir.path().string(), several ? device.backend() : kernels::reference_backend(),
                   [&](std::uint64_t, std::uint64_t) {
                     if (!std::exchange(cut, true)) std::filesystem::resize_file(file, 1000);
                   });
    CAPTURE(several);
    REQUIRE(!loaded);
    CHECK(loaded.error().code == errc::bad_file);
    CHECK_THAT(loaded.error().message, Contains("model.safetensors: it ends before byte"));
    CHECK(device.begun.empty());
  }
}

TEST_CASE("without memory that the device can reach a load is refused") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path());
  late_uploads device;
  device.table.do_allocate_host = [](void*, std::uint64_t) -> void* { return nullptr; };
  const auto loaded = load_model(dir.path().string(), device.backend());
  REQUIRE(!loaded);
  CHECK(loaded.error().code == errc::does_not_fit);
}

}  // namespace weir::tests::fill_test
