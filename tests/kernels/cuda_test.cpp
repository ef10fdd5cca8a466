// Every operation of the cuda backend against the reference, over random shapes; skipped, saying so, where
// there is no device.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <numeric>

#include "kernels/buffer.h"
#include "kernels/cuda/backend.h"
#include "kernels/host_buffer.h"
#include "kernels/random_weights.h"
#include "tests/kernels/random_data.h"
#include "tests/support/cuda_device.h"

namespace weir::tests::cuda_test {

using namespace weir::kernels;

namespace {

using backend_ptr = std::shared_ptr<const backend>;

constexpr dtype types[] = {dtype::f32, dtype::bf16, dtype::f16};

void on_cuda(const std::function<void(const backend_ptr&)>& check) {
  const backend_ptr b = tests::cuda_device();
  if (!b) return;
  check(b);
  const char* fault = b->fault(b->self);
  CHECK(std::string(fault ? fault : "") == "");
}

const backend& defined() {
  static const auto b = reference_backend();
  return *b;
}

// Host data on the device, and back.
class on_device {
 public:
  on_device(const backend_ptr& b, const void* from, std::size_t bytes) : b_(b), memory_(b, bytes) {
    REQUIRE((bytes == 0 || memory_.data() != nullptr));
    if (bytes) b->do_upload(b->self, memory_.data(), from, bytes);
  }
  on_device(const backend_ptr& b, const std::vector<float>& v)
      : on_device(b, v.data(), v.size() * sizeof(float)) {}
  float* floats() const { return memory_.floats(); }
  std::vector<float> back() const {
    std::vector<float> v(memory_.size() / sizeof(float));
    b_->do_download(b_->self, v.data(), memory_.data(), memory_.size());
    return v;
  }

 private:
  backend_ptr b_;
  buffer memory_;
};

matrix packed(const backend_ptr& b, const buffer& memory, matrix m) {
  b->do_pack(b->self, m, memory.data());
  m.data = memory.data();
  m.order = layout::packed;
  return m;
}

}  // namespace

TEST_CASE("cuda: memory is zeroed, and copies both ways keep every byte") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(1);
    const auto v = random_floats(r, 100003);
    const buffer zeroed(b, 1000), copy(b, v.size() * sizeof(float));
    std::vector<std::byte> bytes(1000, std::byte{7});
    b->do_download(b->self, bytes.data(), zeroed.data(), bytes.size());
    CHECK(bytes == std::vector<std::byte>(1000));
    CHECK(reinterpret_cast<std::uintptr_t>(copy.data()) % 256 == 0);
    const on_device there(b, v);
    b->run(kernels::copy{copy.data(), 0, there.floats(), 0, copy.size()});
    std::vector<float> back(v.size());
    b->do_download(b->self, back.data(), copy.data(), copy.size());
    CHECK(back == v);
    CHECK(b->free_bytes(b->self) > 0);
  });
}

TEST_CASE("cuda: pieces are copied between strides, and to pinned memory and back, every byte and no other") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(4);
    for (int round = 0; round < 40; ++round) {
      const std::uint32_t count = pick(r, 1, 40);
      const std::uint64_t bytes = pick(r, 1, round % 5 ? 5000 : 200000), near = (bytes + 15) / 16 * 16,
                          far = near + 16 * pick(r, 0, 20);
      std::vector<std::byte> from(count * far);
      for (auto& x : from) x = static_cast<std::byte>(r());
      const buffer apart(b, count * far), again(b, count * far);
      b->do_upload(b->self, apart.data(), from.data(), from.size());
      const host_buffer pinned(b, count * near);
      REQUIRE(pinned.data() != nullptr);
      std::memset(pinned.data(), 0x5a, pinned.size());
      b->run(kernels::copy{pinned.data(), near, apart.data(), far, bytes, count});
      b->run(kernels::copy{again.data(), far, pinned.data(), near, bytes, count});
      std::vector<std::byte> back(count * far);
      b->do_download(b->self, back.data(), again.data(), back.size());  // waits for both
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto piece = [&](const std::byte* all, std::uint64_t stride, std::uint64_t n) {
          return std::vector<std::byte>(all + i * stride, all + i * stride + n);
        };
        const auto wanted = piece(from.data(), far, bytes);
        CAPTURE(round, count, bytes, far, i);
        REQUIRE(piece(pinned.data(), near, bytes) == wanted);
        REQUIRE(piece(back.data(), far, bytes) == wanted);
        for (std::uint64_t at = bytes; at < near; ++at)
          REQUIRE(pinned.data()[i * near + at] == std::byte{0x5a});
        for (std::uint64_t at = bytes; at < far; ++at) REQUIRE(back[i * far + at] == std::byte{0});
      }
    }
    CHECK(!b->fault(b->self));
  });
}

TEST_CASE("cuda: more memory than there is is an answer, and leaves the device whole") {
  on_cuda([](const backend_ptr& b) {
    CHECK(buffer(b, std::uint64_t{1} << 50).data() == nullptr);
    CHECK(buffer(b, 1 << 20).data() != nullptr);
  });
}

TEST_CASE("cuda: linear equals the reference") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(2);
    for (int round = 0; round < 30; ++round) {
      const dtype type = types[round % 3];
      const std::uint32_t rows = pick(r, 1, 140), n = pick(r, 1, 400), k = pick(r, 1, 600);
      const tests::random_matrix w(r, type, n, k);
      const buffer memory(b, b->weight_bytes(b->self, type, n, k));
      const auto x = random_floats(r, std::size_t{rows} * k), bias = random_floats(r, n);
      const bool biased = pick(r, 0, 1) == 1;
      auto wanted = tests::poison(std::size_t{rows} * n);
      const on_device dx(b, x), dbias(b, bias), out(b, wanted);
      defined().run(linear{w.view, biased ? bias.data() : nullptr, x.data(), wanted.data(), rows});
      b->run(linear{packed(b, memory, w.view), biased ? dbias.floats() : nullptr, dx.floats(), out.floats(),
                    rows});
      CAPTURE(name(type), rows, n, k);
      CHECK(tests::worst_difference(wanted, out.back()) <= 3e-5);
    }
  });
}

TEST_CASE("cuda: gather equals the reference bit for bit") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(3);
    for (const dtype type : types)
      for (const float factor : {1.0f, 59.75f}) {
        const std::uint32_t rows = 50, width = pick(r, 1, 1400);
        const tests::random_matrix table(r, type, rows, width);
        const buffer memory(b, b->weight_bytes(b->self, type, rows, width));
        std::vector<std::int32_t> ids(40);
        for (auto& id : ids) id = static_cast<std::int32_t>(pick(r, 0, rows - 1));
        auto wanted = tests::poison(ids.size() * width);
        const on_device out(b, wanted);
        defined().run(gather{table.view, ids, wanted.data(), factor});
        b->run(gather{packed(b, memory, table.view), ids, out.floats(), factor});
        CHECK(wanted == out.back());
      }
  });
}

TEST_CASE(
    "cuda: norms equal the reference, of rows and of heads, centred or not, with weights of every kind") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(14);
    for (int round = 0; round < 24; ++round) {
      const bool centred = round % 2 == 1, biased = round % 4 >= 2, own = round % 3 == 1;
      // Heads that are whole rows are wide.
      const std::uint32_t rows = pick(r, 1, 40), width = pick(r, 1, 2000), heads = pick(r, 1, 8),
                          head_dim = round % 3 == 2 ? pick(r, 1024, 5000) : pick(r, 2, 300),
                          stride = heads * head_dim + pick(r, 0, 9);
      CAPTURE(rows, width, heads, head_dim, centred, biased, own);
      auto x = random_floats(r, std::size_t{rows} * width, 3);
      if (centred)
        for (float& v : x) v += 2;
      const auto weight = random_floats(r, width), bias = random_floats(r, width);
      auto wanted = tests::poison(x.size());
      const on_device dx(b, x), dweight(b, weight), dbias(b, bias), out(b, wanted);
      defined().run(row_norm{x.data(), weight.data(), wanted.data(), rows, width, 1e-5f, centred,
                             biased ? bias.data() : nullptr});
      b->run(row_norm{dx.floats(), dweight.floats(), out.floats(), rows, width, 1e-5f, centred,
                      biased ? dbias.floats() : nullptr});
      CHECK(tests::worst_difference(wanted, out.back()) <= 3e-6);

      auto all = random_floats(r, std::size_t{rows} * stride);
      const auto weights = random_floats(r, heads * head_dim);
      const on_device dall(b, all), dweights(b, weights);
      const std::uint32_t apart = own ? head_dim : 0;
      defined().run(
          head_norm{all.data(), weights.data(), rows, stride, heads, head_dim, 1e-6f, centred, apart});
      b->run(
          head_norm{dall.floats(), dweights.floats(), rows, stride, heads, head_dim, 1e-6f, centred, apart});
      CHECK(tests::worst_difference(all, dall.back()) <= 3e-6);
    }
  });
}

TEST_CASE("cuda: rotary equals the reference, whole heads and parts of them, with a factor or without") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(15);
    for (int round = 0; round < 12; ++round) {
      const std::uint32_t rows = pick(r, 1, 40), heads = pick(r, 1, 8), half = pick(r, 2, 128);
      const std::uint32_t pairs = round % 2 ? pick(r, 1, half) : half,
                          stride = heads * half * 2 + pick(r, 0, 9);
      const float factor = round % 3 ? 1.0f : 1.3466f;
      CAPTURE(rows, heads, half, pairs);
      auto x = random_floats(r, std::size_t{rows} * stride);
      const auto frequencies = random_floats(r, pairs);
      const on_device dx(b, x);
      std::vector<std::uint32_t> positions(rows);
      for (auto& p : positions) p = pick(r, 0, 100000);
      auto cos = tests::poison(std::size_t{rows} * pairs), sin = cos;
      const on_device dcos(b, cos), dsin(b, sin);
      defined().run(rotary_angles{positions, frequencies, cos.data(), sin.data(), factor});
      b->run(rotary_angles{positions, frequencies, dcos.floats(), dsin.floats(), factor});
      CHECK(tests::worst_difference(cos, dcos.back()) <= 1e-6);
      CHECK(tests::worst_difference(sin, dsin.back()) <= 1e-6);
      defined().run(rotary{x.data(), cos.data(), sin.data(), rows, stride, heads, 2 * half, 2 * pairs});
      b->run(rotary{dx.floats(), dcos.floats(), dsin.floats(), rows, stride, heads, 2 * half, 2 * pairs});
      CHECK(tests::worst_difference(x, dx.back()) <= 3e-6);
    }
  });
}

TEST_CASE("cuda: activations, gates, sums and bounds equal the reference") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(16);
    for (int round = 0; round < 12; ++round) {
      const std::uint32_t rows = pick(r, 1, 40), width = pick(r, 1, 2000);
      const auto kind = static_cast<activation>(round % 4);
      const bool gated = round % 2 == 0 || kind == activation::clamped;
      CAPTURE(rows, width, round);
      auto both = random_floats(r, std::size_t{rows} * 2 * width, 4);
      if (round == 11) both[0] = both[both.size() - 1] = 1e30f;  // which the limit bounds
      auto wanted = tests::poison(std::size_t{rows} * width);
      const on_device dboth(b, both), out(b, wanted);
      defined().run(activate{both.data(), wanted.data(), rows, width, kind, gated, 3.0f});
      b->run(activate{dboth.floats(), out.floats(), rows, width, kind, gated, 3.0f});
      CHECK(tests::worst_difference(wanted, out.back()) <= 1e-6);

      // Gates that lie in wider rows, with a column of something else beside them.
      wanted = out.back();
      const std::uint32_t stride = 2 * width;
      defined().run(sigmoid_mul{wanted.data(), both.data() + width, rows, width, stride});
      b->run(sigmoid_mul{out.floats(), dboth.floats() + width, rows, width, stride});
      CHECK(tests::worst_difference(wanted, out.back()) <= 1e-6);

      wanted = out.back();
      const float factor = round % 4 ? 0.22f : 1.0f;
      defined().run(add{wanted.data(), both.data(), wanted.size(), factor});
      b->run(add{out.floats(), dboth.floats(), wanted.size(), factor});
      CHECK(tests::worst_difference(wanted, out.back()) <= 1e-6);

      wanted = out.back();
      const float cap = round % 4 == 1 ? 0.0f : 5.0f;
      defined().run(soft_cap{wanted.data(), wanted.size(), factor, cap});
      b->run(soft_cap{out.floats(), wanted.size(), factor, cap});
      CHECK(tests::worst_difference(wanted, out.back()) <= 1e-6);
    }
  });
}

TEST_CASE("cuda: kv_write fills the reference's slots and no others, attention equals it") {
  on_cuda([](const backend_ptr& b) {
    tests::rng r(5);
    for (int round = 0; round < 40; ++round) {
      // Rows and heads of 16 bytes are read at once; all others, element by element.
      const std::uint32_t unit = round % 4 == 0 ? 1 : 4;
      const bool is_long = round % 5 == 2, is_wide = round % 5 == 3;
      const std::uint32_t heads = is_long || is_wide ? 1 : pick(r, 1, 4),
                          group = pick(r, 1,
                                       is_long   ? 4
                                       : is_wide ? 40
                                                 : 8),
                          head_dim = unit == 1 ? pick(r, 4, 128) * 2 : pick(r, 2, 64) * 4,
                          page_tokens = 16 * pick(r, 1, 4), window = pick(r, 0, 1) ? pick(r, 1, 100) : 0;
      const std::uint32_t q_width = heads * group * head_dim, kv_width = heads * head_dim;
      const std::uint32_t stride = q_width + 2 * kv_width + pick(r, 0, 5) * unit;
      std::vector<kv_slice> history, now;
      std::vector<std::vector<std::int32_t>> pages;
      std::uint32_t before_rows = 0, rows = 0, page_count = 0;
      for (std::uint32_t s = 0; s < (is_long ? 1 : pick(r, 1, 5)); ++s) {
        const std::uint32_t before = pick(r, 1, is_long ? 2500 : 200),
                            more = pick(r, 0, 1) ? 1 : pick(r, 1, 40);
        history.push_back({before_rows, before, 0, nullptr});
        now.push_back({rows, more, before, nullptr});
        before_rows += before;
        rows += more;
        pages.emplace_back((before + more + page_tokens - 1) / page_tokens);
        page_count += static_cast<std::uint32_t>(pages.back().size());
      }
      std::vector<std::int32_t> order(page_count);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), r);
      for (std::size_t s = 0; s < pages.size(); ++s) {
        for (auto& p : pages[s]) {
          p = order.back();
          order.pop_back();
        }
        history[s].pages = now[s].pages = pages[s].data();
      }
      const auto old = random_floats(r, std::size_t{before_rows} * stride),
                 qkv = random_floats(r, std::size_t{rows} * stride);
      auto keys = tests::poison(std::size_t{page_count} * kv_width * page_tokens), values = keys;
      auto wanted = tests::poison(std::size_t{rows} * q_width);
      const on_device dold(b, old), dqkv(b, qkv), dkeys(b, keys), dvalues(b, values), out(b, wanted);
      const kv_pages host{keys.data(), values.data(), heads, head_dim, page_tokens};
      const kv_pages there{dkeys.floats(), dvalues.floats(), heads, head_dim, page_tokens};
      const auto sinks = random_floats(r, heads * group, 4);
      const on_device dsinks(b, sinks);
      const auto run = [&](const backend& on, const float* o, const float* n, const kv_pages& kv,
                           const float* sunk, float* to) {
        on.run(kv_write{o + q_width, o + q_width + kv_width, stride, kv, history});
        on.run(kv_write{n + q_width, n + q_width + kv_width, stride, kv, now});
        attention_rule rule{window, 1.0f / std::sqrt(static_cast<float>(head_dim))};
        if (round % 3 == 1) rule.cap = 2;
        if (round % 4 >= 2) rule.growth = 0.3f, rule.growth_unit = 16;
        on.run(attention{n, stride, heads * group, kv, now, rule, to, round % 2 ? sunk : nullptr});
      };
      run(defined(), old.data(), qkv.data(), host, sinks.data(), wanted.data());
      run(*b, dold.floats(), dqkv.floats(), there, dsinks.floats(), out.floats());
      CAPTURE(heads, group, head_dim, page_tokens, rows, window);
      const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
        return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
      };
      CHECK(same(keys, dkeys.back()));
      CHECK(same(values, dvalues.back()));
      CHECK(tests::worst_difference(wanted, out.back()) <= 1e-5);
    }
  });
}

TEST_CASE("cuda: random weights are the host's, bit for bit") {
  on_cuda([](const backend_ptr& b) {
    const std::uint64_t count = 100003;
    const buffer memory(b, count * 4);
    std::vector<std::uint16_t> halves(count);
    const auto fill = [&](dtype type, bool norm, std::uint64_t seed) {
      const auto all = static_cast<std::uint32_t>(count);
      b->do_fill_random(b->self, {memory.data(), type, all, 1}, 0, all, norm, seed);
    };
    fill(dtype::bf16, false, 77);
    b->do_download(b->self, halves.data(), memory.data(), count * 2);
    std::vector<std::uint16_t> others(count);
    fill(dtype::f16, false, 77);
    b->do_download(b->self, others.data(), memory.data(), count * 2);
    std::vector<float> norms(count);
    fill(dtype::f32, true, 78);
    b->do_download(b->self, norms.data(), memory.data(), count * 4);
    bool same = true;
    for (std::uint64_t i = 0; i < count; ++i)
      same = same && halves[i] == random_weight(77, i) && from_f16(others[i]) == from_bf16(halves[i]) &&
             norms[i] == from_bf16(random_weight(78, i)) + 1.0f;
    CHECK(same);
  });
}

TEST_CASE("a cuda device that is not there is refused, saying why") {
  std::string why;
  const int count = cuda_devices(why);
  CHECK((count > 0 || !why.empty()));
  why.clear();
  CHECK(cuda_backend(count + 5, why) == nullptr);
  CHECK(!why.empty());
}

}  // namespace weir::tests::cuda_test
