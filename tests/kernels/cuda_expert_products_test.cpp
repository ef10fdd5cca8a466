// What a decoder on a device computes of mixtures of experts, one kernel after the other, against loops in
// double. Skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <cmath>
#include <numeric>

#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/experts/route.h"
#include "kernels/cuda/layers.h"
#include "tests/kernels/cuda_expert_data.h"
#include "tests/kernels/on_device.h"
#include "tests/support/seed.h"

namespace weir::tests::cuda_expert_products_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

std::vector<element> random_elements(rng& r, dtype type, std::size_t count) {
  const auto v = random_floats(r, count);
  std::vector<element> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = rounded(type, v[i]);
  return out;
}

// The lists of some slots, on the device.
struct lists_there {
  weir::tests::on_device<std::int32_t> ids, order, count;
  weir::tests::on_device<expert_tile> tiles;
  expert_lists view;

  lists_there(device& d, const std::vector<std::int32_t>& of, const expert_division& by)
      : ids(d, of),
        order(d, std::vector<std::int32_t>(of.size() + 1, -7)),
        count(d, {-7}),
        tiles(d, std::vector<expert_tile>(by.tiles + 1, {-7, -7, -7})) {
    view.ids = ids.get();
    view.order = order.get();
    view.tiles = tiles.get();
    view.count = count.get();
  }
};

// Slots of padding among those of `ids`.
void pad(rng& r, std::vector<std::int32_t>& ids) {
  for (std::int32_t& id : ids)
    if (pick(r, 0, 9) == 0) id = -1;
}

double activated(activation f, double g, double u, double limit) {
  if (f == activation::silu) return g / (1 + std::exp(-g)) * u;
  if (f == activation::gelu) return 0.5 * g * (1 + std::tanh(0.7978845608 * (g + 0.044715 * g * g * g))) * u;
  if (f == activation::relu2) return (g <= 0 ? 0 : g * g) * u;
  g = std::min(g, limit);
  u = std::clamp(u, -limit, limit);
  return g / (1 + std::exp(-1.702 * g)) * (u + 1);
}

// A number in double, and how far from it the device's may lie.
struct close_to {
  double number = 0, off = 0;
};

// A product of slots and their experts: random data, and outputs in double.
struct scene {
  dtype type;
  expert_set w;
  std::vector<element> x;
  std::vector<float> bias;
  std::vector<std::int32_t> ids;
  std::uint32_t share;
  expert_out kind;
  activation f;

  // `off`: of every product of the sum, as a share of it.
  close_to sum(std::uint32_t slot, std::uint32_t row, double off) const {
    const auto expert = static_cast<std::uint32_t>(ids[slot]);
    const matrix& m = w.on_host.first;
    const std::vector<float> by = w.row(expert, row);
    close_to v{bias.empty() ? 0.0 : bias[expert * m.rows + row], 1e-6};
    for (std::uint32_t c = 0; c < m.cols; ++c) {
      const double product = double{number(type, x[std::size_t{slot / share} * m.cols + c])} * by[c];
      v.number += product;
      v.off += off * std::abs(product);
    }
    return v;
  }

  close_to output(std::uint32_t slot, std::uint32_t i, double off) const {
    const bool gated = kind == expert_out::gated;
    const close_to g = sum(slot, i, off);
    if (kind == expert_out::made) return g;
    const close_to u = gated ? sum(slot, i + w.on_host.first.rows / 2, off) : close_to{1, 0};
    close_to out{activated(f, g.number, u.number, 2), 0};
    for (const double x : {g.number - g.off, g.number + g.off})
      for (const double y : {u.number - u.off, u.number + u.off})
        out.off = std::max(out.off, std::abs(activated(f, x, y, 2) - out.number));
    const double rounded = type == dtype::bf16 ? 0x1p-8 : 0x1p-11;  // to an element
    out.off = 1e-6 + 1.25 * out.off + rounded * (std::abs(out.number) + out.off);
    return out;
  }
};

scene random_scene(rng& r, const std::shared_ptr<const backend>& b, dtype type, dtype weights,
                   std::uint32_t slots, std::uint32_t share, histogram how) {
  const std::uint32_t experts = pick(r, 1, 24), n = 16 * pick(r, 1, 20);
  const std::uint32_t block = facts(weights).block_weights;
  const std::uint32_t k = is_plain(weights) ? 8 * pick(r, 1, 60) : block * pick(r, 1, block == 32 ? 19 : 3);
  const auto kind = static_cast<expert_out>(pick(r, 0, 2));
  auto f = static_cast<activation>(pick(r, 0, 3));
  if (f == activation::clamped && kind == expert_out::alone) f = activation::relu2;
  const float scale = 1 / std::sqrt(static_cast<float>(k));  // sums are then about 1
  scene s{type,
          expert_set(r, b, weights, experts, n, k),
          {},
          {},
          draw_experts(r, slots, experts, how),
          share,
          kind,
          f};
  for (const float v : random_floats(r, std::size_t{slots / share} * k, scale))
    s.x.push_back(rounded(type, v));
  if (pick(r, 0, 1)) s.bias = random_floats(r, std::size_t{experts} * n);
  pad(r, s.ids);
  return s;
}

// What the device makes of a scene: outputs as floats by slots, NaN where nothing was written.
std::vector<float> run(device& d, const scene& s, const expert_division& by,
                       slot_places places = slot_places::by_slot, bool settled = false) {
  const matrix& m = s.w.on_host.first;
  const auto slots = static_cast<std::uint32_t>(s.ids.size());
  const std::size_t width = s.kind == expert_out::gated ? m.rows / 2 : m.rows, count = slots * width + 64;
  const lists_there lists(d, s.ids, by);
  const weir::tests::on_device x(d, s.x);
  const weir::tests::on_device bias(d, s.bias);
  const weir::tests::on_device floats(d, std::vector<float>(count, NAN));
  const weir::tests::on_device halves(d, std::vector<element>(count, element{0xffff}));
  const bool wide = s.kind == expert_out::made;
  if (!by.single) order_slots(d, lists.view, slots, s.w.there.count, by);
  expert_product p{s.w.there, s.bias.empty() ? nullptr : bias.get(),
                   x.get(),   wide ? static_cast<void*>(floats.get()) : halves.get(),
                   slots,     s.share,
                   s.kind,    s.f,
                   2};
  p.ids_settled = settled;
  p.places = places;
  const weir::tests::on_device gathered(d,
                                        std::vector<element>(slots * std::size_t{m.cols}, element{0xffff}));
  if (places != slot_places::by_slot) {
    gather_slots(d, lists.view, x.get(), slots, s.share, m.cols, gathered.get());
    p.x = gathered.get();
    p.share = 1;
  }
  multiply_experts(d, s.type, lists.view, p, by);
  d.sync();
  REQUIRE(d.fault == "");
  std::vector<float> out;
  if (wide)
    out = floats.back();
  else
    for (const element e : halves.back()) out.push_back(number(s.type, e));
  if (places != slot_places::in_order) return out;
  std::vector<float> by_slot(count, NAN);
  const auto order = lists.order.back();
  for (std::size_t i = 0; i < slots; ++i) {
    if (order[i] < 0) continue;
    const auto slot = static_cast<std::size_t>(order[i]);
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                by_slot.begin() + static_cast<std::ptrdiff_t>(slot * width));
  }
  return by_slot;
}

// The share that rounding may have of each product: sums are f32, and in tiles quantised weights are rounded
// to bf16.
double rounding(const scene& s, const expert_division& by) {
  return 6e-5 + (is_plain(s.w.on_host.first.type) || by.single ? 0 : 0x1p-8);
}

// Compares some outputs of every slot, and sees that padding and what lies behind were not written. Returns
// the largest difference, in units of what rounding allows.
double worst(rng& r, const scene& s, const std::vector<float>& got, double off) {
  const std::size_t slots = s.ids.size(), width = (got.size() - 64) / slots;
  double worst = 0;
  const std::size_t some = slots > 300 ? 1 : 6;
  for (std::size_t slot = 0; slot < slots; ++slot)
    for (std::size_t j = 0; j < some; ++j) {
      // The first outputs, the last ones, and any.
      const std::size_t i = j == 0   ? (slot * 7) % width
                            : j == 1 ? width - 1
                                     : pick(r, 0, std::uint32_t(width - 1));
      if (s.ids[slot] < 0) continue;
      const close_to wanted = s.output(static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(i), off);
      const double units = std::abs(wanted.number - got[slot * width + i]) / wanted.off;
      worst = units <= 1e30 ? std::max(worst, units) : 1e30;  // a NaN is no number
    }
  std::size_t wrong = 0;  // numbers that were written and should not be, and the other way round
  for (std::size_t at = 0; at < got.size(); ++at)
    wrong += std::isnan(got[at]) != (at >= slots * width || s.ids[at / width] < 0);
  CHECK(wrong == 0);
  return worst;
}

std::vector<expert_division> divisions(std::uint32_t slots, std::uint32_t experts, bool plain) {
  std::vector<expert_division> out{{true, 0, 0}};
  for (const std::uint32_t size : {small_tile_slots, tile_slots, large_tile_slots})
    if (plain || size != large_tile_slots) out.push_back({false, size, most_tiles(slots, experts, size)});
  return out;
}

}  // namespace

TEST_CASE("cuda: slots are put in the order of their experts, and in tiles, for every histogram") {
  device* d = the_device();
  if (!d) return;
  rng r(static_cast<rng::result_type>(drawn_seed(41)));
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t counts[] = {1, 8, 31, 128, 1000, 1024}, experts = counts[round % 6];
    const std::uint32_t slots = round % 7 == 0 ? pick(r, 1, 20) : round == 9 ? 32768 : pick(r, 20, 5000);
    auto ids = draw_experts(r, slots, experts, histograms[round % std::size(histograms)]);
    if (round % 3 == 1) pad(r, ids);
    if (round == 20) std::fill(ids.begin(), ids.end(), -1);
    for (const std::uint32_t size : {small_tile_slots, tile_slots, large_tile_slots}) {
      const expert_division by{false, size, most_tiles(slots, experts, size)};
      const lists_there there(*d, ids, by);
      order_slots(*d, there.view, slots, experts, by);
      std::vector<std::int32_t> wanted;
      for (std::uint32_t i = 0; i < slots; ++i)
        if (ids[i] >= 0) wanted.push_back(static_cast<std::int32_t>(i));
      std::ranges::stable_sort(wanted, {}, [&](std::int32_t i) { return ids[static_cast<std::size_t>(i)]; });
      CAPTURE(round, slots, experts, size);
      auto order = there.order.back();
      CHECK(order.back() == -7);
      order.resize(wanted.size());
      CHECK(order == wanted);
      const auto tiles = there.tiles.back();
      const std::int32_t count = there.count.back()[0];
      CHECK(tiles.back().expert == -7);
      REQUIRE(count >= 0);
      REQUIRE(static_cast<std::uint32_t>(count) <= by.tiles);
      std::int32_t at = 0;  // of `wanted`
      bool right = true;
      for (std::int32_t t = 0; t < count; ++t) {
        const expert_tile& tile = tiles[static_cast<std::size_t>(t)];
        right &= tile.first == at && tile.count > 0 && tile.count <= static_cast<std::int32_t>(size);
        for (std::int32_t i = 0; right && i < tile.count; ++i, ++at)
          right &= static_cast<std::size_t>(at) < wanted.size() &&
                   ids[static_cast<std::size_t>(wanted[static_cast<std::size_t>(at)])] == tile.expert;
        // Only the last tile of an expert is not full.
        if (right && tile.count < static_cast<std::int32_t>(size) && t + 1 < count)
          right &= tiles[static_cast<std::size_t>(t + 1)].expert > tile.expert;
      }
      CHECK(right);
      CHECK(static_cast<std::size_t>(at) == wanted.size());
    }
  }
  CHECK(d->fault == "");
}

TEST_CASE(
    "cuda: a decoder's products of experts with plain weights equal loops in double, in every division") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  rng r(static_cast<rng::result_type>(drawn_seed(42)));
  for (int round = 0; round < 48; ++round) {
    const dtype type = round % 2 ? dtype::f16 : dtype::bf16;
    const std::uint32_t share = pick(r, 1, 8), rows = round % 12 == 0 ? 400 : pick(r, 1, 30);
    const scene s = random_scene(r, b, type, type, rows * share, pick(r, 0, 1) ? share : 1,
                                 histograms[round % std::size(histograms)]);
    const matrix& m = s.w.on_host.first;
    for (const expert_division& by : divisions(rows * share, s.w.there.count, true)) {
      CAPTURE(round, name(type), rows, share, m.rows, m.cols, s.w.there.count, int(s.kind), int(s.f),
              by.single, by.tile_slots);
      CHECK(worst(r, s, run(d, s, by), rounding(s, by)) <= 1);
      CHECK(worst(r, s, run(d, s, by, slot_places::by_slot, true), rounding(s, by)) <= 1);
      if (!can_group_slots(d, s.w.there, by)) continue;
      CHECK(worst(r, s, run(d, s, by, slot_places::in_order), rounding(s, by)) <= 1);
      CHECK(worst(r, s, run(d, s, by, slot_places::to_slots), rounding(s, by)) <= 1);
    }
  }
}

TEST_CASE(
    "cuda: both products of a mixture of few slots equal loops in double, and what is added to the stream") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  rng r(static_cast<rng::result_type>(drawn_seed(48)));
  int at_once = 0;
  for (int round = 0; round < 60; ++round) {
    const dtype type = round % 2 ? dtype::f16 : dtype::bf16;
    const std::uint32_t chosen = pick(r, 1, 8), rows = pick(r, 1, most_single_slots / chosen),
                        slots = rows * chosen;
    const std::uint32_t experts = pick(r, 1, 24), unit = round % 6 == 5 ? 8 : 32;
    // Some of the widths have fewer columns than a stage, and some have a part of a stage at the end.
    const std::uint32_t hidden = unit * pick(r, 1, 640 / unit), inter = unit * pick(r, 1, 640 / unit);
    const auto f = static_cast<activation>(pick(r, 0, 3));
    const bool gated = f == activation::clamped || round % 3 != 2;
    scene first{type,
                expert_set(r, b, type, experts, (gated ? 2 * inter : inter + 15) / 16 * 16, hidden),
                {},
                {},
                {},
                chosen,
                gated ? expert_out::gated : expert_out::alone,
                f};
    first.ids =
        draw_experts(r, slots, experts, histograms[static_cast<std::size_t>(round) % std::size(histograms)]);
    pad(r, first.ids);
    for (const float v : random_floats(r, std::size_t{rows} * hidden, 1 / std::sqrt(float(hidden))))
      first.x.push_back(rounded(type, v));
    const std::uint32_t made = first.w.there.first.rows / (first.kind == expert_out::gated ? 2 : 1);
    scene second{type,
                 expert_set(r, b, type, experts, hidden, made),
                 {},
                 {},
                 first.ids,
                 1,
                 expert_out::made,
                 activation::silu};
    if (pick(r, 0, 1)) first.bias = random_floats(r, std::size_t{experts} * first.w.there.first.rows);
    if (pick(r, 0, 1)) second.bias = random_floats(r, std::size_t{experts} * hidden);

    const std::vector<std::uint32_t> none(most_single_slots * ((hidden + 15) / 16));
    const weir::tests::on_device counters(d, none);
    // The experts of a row that pads the batch are all -1, and no others.
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      if (first.ids[slot / chosen * chosen] < 0)
        first.ids[slot] = -1;
      else if (first.ids[slot] < 0)
        first.ids[slot] = 0;
    second.ids = first.ids;
    lists_there lists(d, first.ids, {true, 0, 0});
    lists.view.added = counters.get();
    const auto stream = random_floats(r, std::size_t{rows} * hidden), weights = random_floats(r, slots);
    const weir::tests::on_device weights_there(d, weights);
    const bool sums = round % 4 != 3;
    const weir::tests::on_device x(d, first.x);
    const weir::tests::on_device bias(d, first.bias), other_bias(d, second.bias);
    for (int again = 0; again < 2; ++again) {  // the counters are ready once more
      const weir::tests::on_device inner(
          d, std::vector<element>(std::size_t{slots} * made + 64, element{0xffff}));
      const weir::tests::on_device out(d, std::vector<float>(std::size_t{slots} * hidden + 64, NAN));
      expert_product in{first.w.there,
                        first.bias.empty() ? nullptr : bias.get(),
                        x.get(),
                        inner.get(),
                        slots,
                        chosen,
                        first.kind,
                        first.f,
                        2};
      expert_product behind{second.w.there, second.bias.empty() ? nullptr : other_bias.get(), inner.get(),
                            out.get(), slots};
      behind.ids_settled = true;
      const weir::tests::on_device added(d, stream);
      const bool is_added = multiply_mixture(d, type, lists.view, in, behind, {true, 0, 0},
                                             {sums ? added.get() : nullptr, weights_there.get(), chosen});
      d.sync();
      REQUIRE(d.fault == "");
      at_once += is_added;
      std::vector<float> between;
      second.x = inner.back();
      for (const element e : second.x) between.push_back(number(type, e));
      CAPTURE(round, again, name(type), rows, chosen, hidden, made, experts, int(first.kind), int(first.f));
      CHECK(worst(r, first, between, 6e-5) <= 1);
      CHECK(worst(r, second, out.back(), 6e-5) <= 1);
      CHECK(counters.back() == none);
      const auto got = out.back();
      std::vector<float> wanted = stream;
      for (std::size_t at = 0; is_added && at < wanted.size(); ++at) {
        double sum = 0;
        for (std::uint32_t slot = std::uint32_t(at / hidden) * chosen, i = 0; i < chosen; ++i, ++slot)
          if (first.ids[slot] >= 0)
            sum += double{weights[slot]} * got[slot * std::size_t{hidden} + at % hidden];
        wanted[at] = float(double{wanted[at]} + sum);
      }
      CHECK(worst_difference(wanted, added.back()) <= 1e-5);
    }
  }
  CHECK(at_once > 60);
}

TEST_CASE(
    "cuda: a decoder's products of experts with quantised weights equal loops in double, of every type") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  rng r(static_cast<rng::result_type>(drawn_seed(43)));
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto weights = static_cast<dtype>(i);
    if (is_plain(weights)) continue;
    for (const histogram how : histograms) {
      const std::uint32_t share = pick(r, 1, 4), rows = pick(r, 1, how == histogram::all_the_same ? 50 : 20);
      const scene s = random_scene(r, b, dtype::bf16, weights, rows * share, pick(r, 0, 1) ? share : 1, how);
      const matrix& m = s.w.on_host.first;
      for (const expert_division& by : divisions(rows * share, s.w.there.count, false)) {
        CAPTURE(name(weights), rows, share, m.rows, m.cols, s.w.there.count, int(s.kind), int(s.f), by.single,
                by.tile_slots);
        CHECK(worst(r, s, run(d, s, by), rounding(s, by)) <= 1);
        CHECK(worst(r, s, run(d, s, by, slot_places::by_slot, true), rounding(s, by)) <= 1);
      }
    }
  }
}

TEST_CASE("cuda: what becomes of a slot in tiles has the same bits whatever slots are beside it") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  rng r(static_cast<rng::result_type>(drawn_seed(44)));
  for (const dtype weights : {dtype::bf16, dtype::q8_0, dtype::q4_k, dtype::mxfp4}) {
    scene s = random_scene(r, b, dtype::bf16, weights, 300, 1, histogram::any);
    const std::uint32_t experts = s.w.there.count, k = s.w.on_host.first.cols;
    const auto ids = s.ids;
    const auto x = s.x;
    const auto whole = run(d, s, divide_experts(300, experts, is_plain(weights), true));
    const std::size_t width = (whole.size() - 64) / 300;
    for (const std::uint32_t first : {0u, 17u, 255u}) {
      const std::uint32_t count = std::min(300 - first, pick(r, 1, 60));
      s.ids.assign(ids.begin() + first, ids.begin() + first + count);
      s.x.assign(x.begin() + std::size_t{first} * k, x.begin() + std::size_t{first + count} * k);
      const auto part = run(d, s, divide_experts(count, experts, is_plain(weights), true));
      CAPTURE(name(weights), first, count);
      CHECK(std::memcmp(part.data(), whole.data() + first * width, count * width * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("cuda: a decoder routes rows of elements as the reference does, and leaves out those that pad") {
  device* d = the_device();
  if (!d) return;
  rng r(static_cast<rng::result_type>(drawn_seed(45)));
  for (const dtype type : {dtype::bf16, dtype::f16})
    for (const std::uint32_t rows : {1u, 5u, 64u, 65u, 300u}) {
      const std::uint32_t width = rows > 64 && type == dtype::bf16 ? 32 * pick(r, 1, 15) : 8 * pick(r, 4, 60);
      const std::uint32_t experts = rows == 300 ? 40 : 32, chosen = 4;
      const auto x = random_elements(r, type, std::size_t{rows} * width);
      std::vector<float> wide;
      for (const element e : x) wide.push_back(number(type, e));
      // Scores far apart, so that no two experts are nearly equal.
      const auto router = random_floats(r, (experts + 1) * width);
      std::vector<std::int32_t> pages_at(rows), ids(rows * chosen, -7);
      for (std::uint32_t i = 0; i < rows; ++i) pages_at[i] = pick(r, 0, 4) ? 3 : -1;
      std::vector<float> weights(rows * chosen), shared(rows);
      route op{wide.data(), router.data(),  nullptr,       nullptr, {experts, chosen},
               ids.data(),  weights.data(), shared.data(), rows,    width};
      reference_backend()->run(op);
      const weir::tests::on_device dx(*d, x);
      const weir::tests::on_device drouter(*d, router), dweights(*d, weights), dshared(*d, shared);
      const weir::tests::on_device dids(*d, std::vector<std::int32_t>(ids.size(), -7)), dpages(*d, pages_at);
      op.router = drouter.get();
      op.ids = dids.get();
      op.weights = dweights.get();
      op.shared = dshared.get();
      route_rows(*d, op, dx.get(), type, dpages.get());
      const auto got = dids.back();
      const auto got_weights = dweights.back();
      std::uint32_t other = 0;
      for (std::uint32_t i = 0; i < rows * chosen; ++i) {
        if (pages_at[i / chosen] < 0) {
          CHECK(got[i] == -1);
          CHECK(got_weights[i] == 0);
        } else if (got[i] != ids[i]) {
          ++other;  // two that are nearly equal
        } else {
          CHECK(got_weights[i] == Approx(weights[i]).epsilon(1e-3).margin(1e-6));
        }
      }
      CHECK(other * 50 <= rows * chosen);
      CHECK(d->fault == "");
    }
}

TEST_CASE("cuda: what experts make is added to the stream in front of the next norm, and behind their own") {
  device* d = the_device();
  if (!d) return;
  rng r(static_cast<rng::result_type>(drawn_seed(46)));
  for (int round = 0; round < 16; ++round) {
    const std::uint32_t rows = round % 5 == 0 ? 100 : pick(r, 1, 20), width = 8 * pick(r, 2, 400),
                        chosen = pick(r, 1, 8);
    const bool shared = round % 2, gated = round % 4 == 3, behind = round % 3 == 1, branched = round % 3 == 2;
    const auto x = random_floats(r, std::size_t{rows} * width), branch = random_floats(r, x.size()),
               made = random_floats(r, x.size() * chosen), beside = random_floats(r, x.size()),
               weights = random_floats(r, rows * chosen), gates = random_floats(r, rows),
               norm_by = random_floats(r, width), behind_by = random_floats(r, width);
    const weir::tests::on_device dx(*d, x), dbranch(*d, branch), dmade(*d, made), dbeside(*d, beside),
        dweights(*d, weights), dgates(*d, gates), dnorm(*d, norm_by), dbehind(*d, behind_by);
    const weir::tests::on_device out(*d, std::vector<element>(x.size(), element{0xffff}));
    pending_sum p;
    p.experts = {dmade.get(), dweights.get(), shared ? dbeside.get() : nullptr,
                 gated ? dgates.get() : nullptr, chosen};
    if (branched) p.branch = dbranch.get();
    if (behind) p.behind = {{dbehind.get()}, 1e-5f};
    p.factor = behind || branched ? 0.5f : 1.0f;
    norm(*d, dtype::bf16, dx.get(), p, nullptr, {{dnorm.get()}, 1e-6f}, rows, width, out.get());
    std::vector<float> wanted(x.size()), normed(x.size());
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::vector<double> sum(width);
      double squares = 0;
      for (std::uint32_t c = 0; c < width; ++c) {
        const std::size_t at = std::size_t{row} * width + c;
        double& v = sum[c] = branched ? branch[at] : 0.0;
        for (std::uint32_t i = 0; i < chosen; ++i)
          v += double{weights[row * chosen + i]} * made[(std::size_t{row} * chosen + i) * width + c];
        if (shared) v += double{gated ? gates[row] : 1.0f} * beside[at];
        squares += v * v;
      }
      const double by = 1 / std::sqrt(squares / width + 1e-5);
      squares = 0;
      for (std::uint32_t c = 0; c < width; ++c) {
        const double v = behind ? sum[c] * by * behind_by[c] : sum[c];
        sum[c] = x[std::size_t{row} * width + c] + p.factor * v;
        squares += sum[c] * sum[c];
        wanted[std::size_t{row} * width + c] = static_cast<float>(sum[c]);
      }
      for (std::uint32_t c = 0; c < width; ++c)
        normed[std::size_t{row} * width + c] =
            static_cast<float>(sum[c] / std::sqrt(squares / width + 1e-6) * norm_by[c]);
    }
    std::vector<float> got;
    for (const element e : out.back()) got.push_back(number(dtype::bf16, e));
    CAPTURE(round, rows, width, chosen);
    CHECK(worst_difference(wanted, dx.back()) <= 1e-6);
    CHECK(worst_difference(normed, got) <= 4.2e-3);
    CHECK(d->fault == "");
  }
}

TEST_CASE("cuda: a mixture that is begun in one kernel is begun as by a norm and a router behind it") {
  device* d = the_device();
  if (!d) return;
  rng r(static_cast<rng::result_type>(drawn_seed(47)));
  int begun = 0;
  std::uint32_t all = 0, other = 0;  // experts; those that differ, because two are nearly equal
  for (int round = 0; round < 40; ++round) {
    const dtype type = round % 2 ? dtype::f16 : dtype::bf16;
    const std::uint32_t rows = pick(r, 1, 8), width = round % 5 == 4 ? 8192 : 8 * pick(r, 2, 512);
    const std::uint32_t experts = round % 7 == 6 ? 500 : pick(r, 2, 160),
                        chosen = pick(r, 1, std::min(8u, experts));
    const bool shared = round % 3 == 1, biased = round % 4 == 3, chosen_by = round % 4 == 2;
    const auto x = random_floats(r, std::size_t{rows} * width), made = random_floats(r, x.size() * chosen),
               weights = random_floats(r, rows * chosen), branch = random_floats(r, x.size()),
               norm_by = random_floats(r, width),
               router = random_floats(r, (experts + 1) * std::size_t{width}),
               bias = random_floats(r, experts), choice_bias = random_floats(r, experts);
    std::vector<std::int32_t> pages_at(rows);
    for (std::int32_t& p : pages_at) p = pick(r, 0, 4) ? 3 : -1;
    const weir::tests::on_device dmade(*d, made), dweights(*d, weights), dnorm(*d, norm_by),
        drouter(*d, router), dbias(*d, bias), dchoice(*d, choice_bias);
    const weir::tests::on_device dpages(*d, pages_at);
    struct result {
      std::vector<float> x, branch, weights, gates, normed;
      std::vector<std::int32_t> ids;
    };
    const auto run = [&](bool at_once) {
      const weir::tests::on_device dx(*d, x), dbranch(*d, branch);
      const weir::tests::on_device out(*d, std::vector<element>(x.size(), element{0xffff}));
      const weir::tests::on_device ids(*d, std::vector<std::int32_t>(rows * chosen, -7));
      const weir::tests::on_device by(*d, std::vector<float>(rows * chosen, NAN)),
          gates(*d, std::vector<float>(rows, NAN));
      pending_sum p;
      p.experts = {dmade.get(), dweights.get(), nullptr, nullptr, chosen};
      if (round % 3 == 2) p.branch = dbranch.get(), p.clear = true;
      const norm_args n{{dnorm.get()}, 1e-6f};
      route op{nullptr,
               drouter.get(),
               biased ? dbias.get() : nullptr,
               chosen_by ? dchoice.get() : nullptr,
               {experts, chosen},
               ids.get(),
               by.get(),
               shared ? gates.get() : nullptr,
               rows,
               width};
      op.how.sigmoid = op.how.choice_bias = chosen_by;
      if (at_once) {
        if (!can_begin_mixture(*d, op)) return result{};
        begin_mixture(*d, type, dx.get(), p, n, op, dpages.get(), out.get());
      } else {
        norm(*d, type, dx.get(), p, nullptr, n, rows, width, out.get());
        route_rows(*d, op, out.get(), type, dpages.get());
      }
      result got{dx.back(), dbranch.back(), by.back(), gates.back(), {}, ids.back()};
      for (const element e : out.back()) got.normed.push_back(number(type, e));
      return got;
    };
    const result wanted = run(false), got = run(true);
    REQUIRE(d->fault == "");
    if (got.ids.empty()) continue;
    ++begun;
    CAPTURE(round, name(type), rows, width, experts, chosen, shared);
    CHECK(got.x == wanted.x);
    CHECK(got.branch == wanted.branch);
    CHECK(worst_difference(wanted.normed, got.normed) <= 4.2e-3);
    all += rows * chosen;
    for (std::uint32_t i = 0; i < rows * chosen; ++i) {
      if (got.ids[i] != wanted.ids[i])
        ++other;
      else
        CHECK(got.weights[i] == Approx(wanted.weights[i]).epsilon(2e-2).margin(1e-5));
    }
    for (std::uint32_t i = 0; shared && i < rows; ++i)
      CHECK(got.gates[i] == Approx(wanted.gates[i]).epsilon(2e-2).margin(1e-5));
  }
  CHECK(other * 50 <= all);
  if (d->path == code_path::hopper && !d->deterministic) CHECK(begun > 30);
}

}  // namespace weir::tests::cuda_expert_products_test

#endif
