// `weir bench kernels`: measures each operation of a model by itself, and each part of a device's own
// decoder, with the shapes of that model. Prints microseconds, bytes a second beside the read limit, and
// flops a second beside the limit of multiplications. Both limits are measured in the same run.
//
// The weights take more memory than any cache has, as in a model. The activations are the same in every call,
// and may stay in a cache. A device that computes asynchronously gets many operations one after the other,
// and the figure is the time from one to the next.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <boost/json/array.hpp>
#include <iostream>
#include <map>
#include <new>
#include <vector>

#include "apps/bench/bench.h"
#include "core/model/load.h"
#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "kernels/cuda/backend.h"
#include "kernels/decoder.h"
#include "kernels/random_weights.h"
#include "kernels/traffic.h"

namespace weir::apps::bench {
namespace {

using kernels::dtype;

struct kernel_options {
  device_options on;
  std::string shape = "tiny-110m", type = "bf16", kv_type = "auto";
  std::vector<std::uint32_t> rows{1, 8, 64, 512};
  std::uint32_t context = 512, ms = 100;
};

struct figure {
  std::string operation;
  std::uint32_t rows = 0;
  double us = 0, bytes_per_s = 0, flops_per_s = 0;
};

class stage {
 public:
  // `kv`: the type of a decoder's keys and values.
  stage(const kernel_options& o, core::model_config c, dtype type, core::kv_choice kv,
        std::shared_ptr<const kernels::backend> b)
      : o_(o), c_(std::move(c)), type_(type), kv_(kv), backend_(std::move(b)) {}

  // Measures the products with each matrix of the model, and then the other operations of a step.
  void run(std::uint32_t rows) {
    const auto h = c_.shape.hidden;
    product("linear qkv", mixer_.width(), h, rows);
    product("linear out", h, mixer_.q_width(), rows);
    product("linear gate_up", layer_.mlp.width(), h, rows);
    product("linear down", h, layer_.mlp.inter, rows);
    if (rows <= o_.context) product("linear head", c_.shape.vocab, h, rows);
    pointwise(rows);
    paged("decode", rows, 1);
    paged("prefill", 1, rows);
    whole(rows);
  }

  const std::vector<figure>& figures() const { return figures_; }

 private:
  static constexpr std::uint64_t past_caches = 512u << 20;

  void product(const char* name, std::uint32_t n, std::uint32_t k, std::uint32_t rows) {
    const auto& w = weights(n, k);
    const auto x = floats(std::uint64_t{rows} * k), out = floats(std::uint64_t{rows} * n);
    std::size_t next = 0;
    measure(name, rows, [&] {
      return kernels::linear{w[next++ % w.size()], nullptr, x.floats(), out.floats(), rows};
    });
  }

  void pointwise(std::uint32_t rows) {
    const auto h = c_.shape.hidden;
    const auto weight = floats(h), x = floats(std::uint64_t{rows} * h), y = floats(std::uint64_t{rows} * h);
    measure("row_norm", rows,
            [&] { return kernels::row_norm{x.floats(), weight.floats(), y.floats(), rows, h, 1e-5f}; });
    measure("add", rows, [&] { return kernels::add{x.floats(), y.floats(), std::size_t{rows} * h}; });

    const auto inter = layer_.mlp.inter;
    const auto gate_up = floats(std::uint64_t{rows} * 2 * inter), inner = floats(std::uint64_t{rows} * inter);
    measure("activate", rows, [&] {
      return kernels::activate{gate_up.floats(), inner.floats(), rows, inter};
    });

    // Cosines and sines of an angle: a row is rotated again and again, and must keep its length.
    const std::vector<std::uint32_t> positions(rows, 7);
    const std::vector<float> frequencies(mixer_.head_dim / 2, 0.5f);
    const auto cos = floats(rows * frequencies.size()), sin = floats(rows * frequencies.size());
    backend_->run(kernels::rotary_angles{positions, frequencies, cos.floats(), sin.floats()});
    const auto qkv = floats(std::uint64_t{rows} * mixer_.width());
    measure("rotary", rows, [&] {
      return kernels::rotary{
          qkv.floats(),    cos.floats(),   sin.floats(), rows, mixer_.width(), mixer_.heads + mixer_.kv_heads,
          mixer_.head_dim, mixer_.head_dim};
    });
  }

  // Measures the writing of keys and values, and attention, for `sequences` sequences with `rows` rows each.
  // The rows end at the last position of the context.
  void paged(const char* what, std::uint32_t sequences, std::uint32_t rows) {
    const std::uint32_t length = std::max(o_.context, rows);
    const std::uint32_t each = core::pages_for(length);
    const std::uint64_t half = std::uint64_t{sequences} * each * core::page_tokens * mixer_.kv_width();
    const auto keys = floats(half), values = floats(half);
    const std::uint32_t total = sequences * rows;
    const auto qkv = floats(std::uint64_t{total} * mixer_.width()),
               out = floats(std::uint64_t{total} * mixer_.q_width());
    std::vector<std::int32_t> pages(sequences * each);
    for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::int32_t>(i);
    std::vector<kernels::kv_slice> slices;
    for (std::uint32_t s = 0; s < sequences; ++s)
      slices.push_back({s * rows, rows, length - rows, pages.data() + s * each});
    const kernels::kv_pages kv{keys.floats(), values.floats(), mixer_.kv_heads, mixer_.head_dim,
                               core::page_tokens};
    float* q = qkv.floats();
    measure(fmt::format("kv_write {}", what), total, [&] {
      return kernels::kv_write{q + mixer_.q_width(), q + mixer_.q_width() + mixer_.kv_width(), mixer_.width(),
                               kv, slices};
    });
    measure(fmt::format("attention {}", what), total, [&] {
      return kernels::attention{q, mixer_.width(), mixer_.heads, kv, slices, {0, 0.125f}, out.floats()};
    });
  }

  // Measures the parts of the device's decoder, which replaces the single operations.
  void whole(std::uint32_t rows) {
    kernels::decoder_shape s;
    s.model = c_.shape;
    s.page_tokens = core::page_tokens;
    s.embedding.type = type_;
    s.kv = kv_;
    for (const auto& p : kernels::time_cuda_decoder(*backend_, s, rows, o_.context))
      figures_.push_back({fmt::format("decoder: {}", p.name), p.rows, p.seconds * 1e6,
                          double(p.bytes) / p.seconds, double(p.flops) / p.seconds});
  }

  template <class Next>
  void measure(std::string name, std::uint32_t rows, Next&& next) {
    backend_->run(next());
    const double once = seconds_of([&] {
      backend_->run(next());
      wait();
    });
    const int together = backend_->on_host ? 1 : std::clamp(static_cast<int>(2e-3 / once), 1, 64);
    std::vector<double> samples;
    for (double all = 0; all < o_.ms * 1e-3 || samples.size() < 5; all += samples.back())
      samples.push_back(seconds_of([&] {
        for (int i = 0; i < together; ++i) backend_->run(next());
        wait();
      }));
    const double s = percentile(samples, 0.5) / together;
    const auto t = kernels::traffic_of(next());
    figures_.push_back({std::move(name), rows, s * 1e6, double(t.bytes) / s, double(t.flops) / s});
  }

  // Waits until all operations are done: a download returns after the operations that were begun before it.
  void wait() {
    float word = 0;
    if (!backend_->on_host) backend_->do_download(backend_->self, &word, last_.data(), sizeof word);
  }

  // A buffer with random values around zero.
  kernels::buffer floats(std::uint64_t count) {
    kernels::buffer b(backend_, count * sizeof(float));
    if (!b.data()) throw std::bad_alloc();
    fill(b.data(), dtype::f32, count);
    return b;
  }

  // Several matrices of one shape, together larger than any cache.
  struct copies {
    kernels::buffer memory;
    std::vector<kernels::matrix> all;
  };
  const std::vector<kernels::matrix>& weights(std::uint32_t n, std::uint32_t k) {
    auto& w = weights_[{n, k}];
    if (!w.all.empty()) return w.all;
    const auto one = (backend_->weight_bytes(backend_->self, type_, n, k) + 255) / 256 * 256;
    const auto count = (past_caches + one - 1) / one;
    w.memory = kernels::buffer(backend_, one * count);
    if (!w.memory.data()) throw std::bad_alloc();
    const std::uint64_t elements = std::uint64_t{n} * k;
    std::vector<std::byte> rows(backend_->do_fill_random ? 0 : kernels::bytes_of(type_, elements));
    if (!rows.empty() && kernels::is_plain(type_))
      kernels::fill_random_weights(rows.data(), type_, elements, false, ++seed_);
    else if (!rows.empty())
      kernels::fill_random_blocks(rows.data(), type_, elements, ++seed_);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::byte* at = w.memory.data() + i * one;
      if (backend_->do_fill_random)
        backend_->do_fill_random(backend_->self, {at, type_, n, k}, 0, n, false, ++seed_);
      else
        backend_->do_pack(backend_->self, {rows.data(), type_, n, k}, at);
      w.all.push_back({at, type_, n, k, kernels::layout::packed});
    }
    return w.all;
  }

  void fill(std::byte* to, dtype type, std::uint64_t elements) {
    if (backend_->do_fill_random) {
      const auto all = static_cast<std::uint32_t>(elements);
      return backend_->do_fill_random(backend_->self, {to, type, all, 1}, 0, all, false, ++seed_);
    }
    std::vector<std::byte> values(elements * kernels::size_of(type));
    kernels::fill_random_weights(values.data(), type, elements, false, ++seed_);
    backend_->do_upload(backend_->self, to, values.data(), values.size());
  }

  const kernel_options& o_;
  const core::model_config c_;
  const kernels::layer_shape& layer_ = c_.shape.layers.front();
  const kernels::attention_mixer& mixer_ = layer_.mixer;
  const dtype type_;
  const core::kv_choice kv_;
  const std::shared_ptr<const kernels::backend> backend_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, copies> weights_;
  std::vector<figure> figures_;
  const kernels::buffer last_{backend_, sizeof(float)};
  std::uint64_t seed_ = 0;
};

struct limits {
  double bytes_per_s = 0, flops_per_s = 0;
};

limits limits_of(const std::shared_ptr<const kernels::backend>& b, dtype type) {
  // So many bytes that the time to start the operation and to wait for it does not matter.
  const std::uint64_t bytes = (b->on_host ? std::uint64_t{512} : std::uint64_t{8192}) << 20;
  const kernels::buffer memory(b, bytes);
  if (!memory.data()) throw std::bad_alloc();
  std::vector<double> reads, peaks;
  for (int i = 0; i < 5; ++i) {
    reads.push_back(seconds_of([&] { b->do_read(b->self, memory.data(), bytes); }));
    peaks.push_back(b->peak_flops(b->self, type));
  }
  return {double(bytes) / percentile(reads, 0.5), percentile(peaks, 0.5)};
}

boost::json::object object_of(const figure& f, const limits& most) {
  boost::json::object o{{"operation", f.operation},
                        {"rows", f.rows},
                        {"us", f.us},
                        {"gb_per_s", f.bytes_per_s * 1e-9},
                        {"share_of_read_limit", f.bytes_per_s / most.bytes_per_s},
                        {"gflop_per_s", f.flops_per_s * 1e-9}};
  if (most.flops_per_s > 0) o["share_of_peak"] = f.flops_per_s / most.flops_per_s;
  return o;
}

void print_table(const std::vector<figure>& figures, const limits& most) {
  std::cout << fmt::format("read limit {:.1f} GB/s, products at most {:.0f} GFLOP/s\n\n",
                           most.bytes_per_s * 1e-9, most.flops_per_s * 1e-9);
  std::cout << fmt::format("{:30} {:>6} {:>10} {:>8} {:>7} {:>9} {:>7}\n", "operation", "rows", "us", "GB/s",
                           "%", "GFLOP/s", "%");
  for (const auto& f : figures)
    std::cout << fmt::format("{:30} {:6} {:10.1f} {:8.2f} {:6.1f}% {:9.1f} {:6.1f}%\n", f.operation, f.rows,
                             f.us, f.bytes_per_s * 1e-9, 100 * f.bytes_per_s / most.bytes_per_s,
                             f.flops_per_s * 1e-9,
                             most.flops_per_s > 0 ? 100 * f.flops_per_s / most.flops_per_s : 0.0);
}

int run(const kernel_options& o) {
  auto backend = open(o.on);
  if (!backend) return fail(backend.error());
  const auto shape = core::parse_random_model(o.shape + ":" + o.type, o.context);
  if (!shape) return fail(shape.error());
  const bool takes = kernels::is_plain(shape->type) ||
                     ((*backend)->takes_blocks && (*backend)->takes_blocks((*backend)->self, shape->type));
  if (!takes)
    return fail(core::make_error(core::errc::not_supported, "device {} does not run {} weights yet",
                                 (*backend)->name, o.type));
  const auto kv = core::parse_kv_type(o.kv_type);
  if (!kv) return fail(kv.error());
  const auto& stores = (*backend)->decoder_stores_kv;
  const bool pages = shape->type == kernels::dtype::bf16 ||
                     (shape->type == kernels::dtype::f16 && *kv != kernels::kv_type::bf16);
  if (*kv && !(pages && stores && stores((*backend)->self, **kv)))
    return fail(core::bad_param("kv-type", "--kv-type {}: {} has no decoder with such pages and {} weights",
                                o.kv_type, (*backend)->name, o.type));
  const auto most = limits_of(*backend, shape->type);
  stage all(o, shape->config, shape->type, *kv, *backend);
  for (const auto rows : o.rows) all.run(rows);
  if (const char* why = (*backend)->fault ? (*backend)->fault((*backend)->self) : nullptr)
    return fail(core::make_error(core::errc::internal, "{}; the figures would mean nothing", why));
  if (!o.on.json) {
    print_table(all.figures(), most);
    return exit_code::done;
  }
  boost::json::array list;
  for (const auto& f : all.figures()) list.push_back(object_of(f, most));
  print({{"benchmark", "kernels"},
         {"backend", std::string((*backend)->name)},
         {"shape", o.shape},
         {"dtype", o.type},
         {"read_limit_gb_per_s", most.bytes_per_s * 1e-9},
         {"peak_gflop_per_s", most.flops_per_s * 1e-9},
         {"operations", std::move(list)}},
        true);
  return exit_code::done;
}

}  // namespace

command add_kernels(CLI::App& app) {
  auto o = std::make_shared<kernel_options>();
  add_options(app, o->on);
  app.add_option("--shape", o->shape, core::random_model_names())->capture_default_str();
  app.add_option("--dtype", o->type, "of the weights: f32, bf16, f16, or quantised: q8_0, q4_k, ...")
      ->capture_default_str();
  app.add_option("--kv-type", o->kv_type,
                 "of a device's decoder with bf16 or f16 weights: auto, fp8, q8, or bf16 beside bf16")
      ->capture_default_str();
  app.add_option("--rows", o->rows, "tokens at once; repeatable")->delimiter(',')->capture_default_str();
  app.add_option("--context", o->context, "tokens that attention sees")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--ms", o->ms, "to spend on each operation at least")
      ->capture_default_str()
      ->check(CLI::Range(1, 60000));
  return [o] { return run(*o); };
}

}  // namespace weir::apps::bench
