// Which descriptions the cuda decoder takes, and what it makes of them. No device is needed.
#include <catch2/catch.hpp>

#include "kernels/cuda/decoder_room.h"
#include "tests/support/plain_layer.h"

namespace weir::tests::cuda_room_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

model_shape plain() {
  model_shape m;
  m.vocab = 512;
  m.hidden = 256;
  m.tables = {{std::vector<float>(32, 0.5f)}};
  m.layers = {plain_layer(512, 4, 2, 64), plain_layer(512, 4, 2, 64)};
  m.layers[1].mixer.place = 1;
  m.groups = {{2, 64, 2}};
  return m;
}

decoder_shape whole(const model_shape& m, dtype type = dtype::bf16) {
  decoder_shape s;
  s.model = m;
  s.page_tokens = cuda::page_tokens;
  s.embedding = s.head = {nullptr, type, m.vocab, m.hidden};
  for (const layer_shape& l : m.layers) {
    decoder_layer w;
    w.qkv = {nullptr, type, l.mixer.width(), m.hidden};
    w.out = {nullptr, type, m.hidden, l.mixer.q_width()};
    w.gate_up = {nullptr, type, l.mlp.width(), m.hidden};
    w.down = {nullptr, type, m.hidden, l.mlp.inter};
    s.layers.push_back(w);
  }
  return s;
}

}  // namespace

TEST_CASE("cuda: a decoder takes every description of the dense families") {
  CHECK(why_not(whole(plain())) == "");
  model_shape m = plain();
  layer_shape& l = m.layers[1];
  l.norms = norm_place::both;
  l.branch_factor = 0.3f;
  l.mixer.rule = {100, 1, 50, 0.1f, 8192};
  l.mixer.rotary = -1;
  l.mixer.norms = head_norms::row;
  l.mlp = {1024, activation::relu2, false};
  m.embed_factor = 12;
  m.embed_norm = true;
  m.logit_factor = 0.1f;
  m.logit_cap = 30;
  m.tables.push_back({std::vector<float>(10, 1.0f), 1.2f});
  CHECK(why_not(whole(m)) == "");
  m.layers[0].norms = norm_place::parallel;
  m.layers[0].mixer.norms = m.layers[1].mixer.norms = head_norms::own;
  m.centred_norms = true;
  CHECK(why_not(whole(m)) == "");
}

TEST_CASE("cuda: a decoder says why it does not take a description") {
  const auto declined = [](const auto& change) {
    model_shape m = plain();
    change(m);
    return std::string(why_not(m));
  };
  CHECK(declined([](model_shape& m) { m.layers.clear(); }) == "it has no layers");
  CHECK(declined([](model_shape& m) {
          m.groups.push_back({1, 128, 1});
        }) == "its layers have pages of different sizes");
  CHECK(declined([](model_shape& m) { m.layers[1].mixer.heads = 8; }) ==
        "its layers have heads of different sizes");
  CHECK(declined([](model_shape& m) { m.layers[1].mixer.gated = true; }) ==
        "some of its layers have gates on attention and others have none");
  CHECK(declined([](model_shape& m) {
          for (layer_shape& l : m.layers) l.mixer.head_dim = 80;
        }) == "no kernel has heads of its sizes");
  CHECK(declined([](model_shape& m) { m.hidden = 252; }) == "no kernel has rows of its width");
  CHECK(declined([](model_shape& m) { m.hidden = 16384; }) == "no kernel has rows of its width");
  CHECK(declined([](model_shape& m) { m.layers[1].mlp.inter = 511; }) ==
        "the width of a feed-forward is no multiple of 8");
  CHECK(declined([](model_shape& m) {
          m.layers[0].mixer.norms = head_norms::row;
          m.centred_norms = true;
        }) == "its norms of whole rows of heads are centred");

  CHECK(why_not(whole(plain(), dtype::f32)) == "it has matrices in f32");
  decoder_shape s = whole(plain());
  s.page_tokens = 16;
  CHECK(why_not(s) == "its pages have another number of tokens");
  s = whole(plain(), dtype::f16);
  s.kv = kv_type::bf16;
  CHECK(why_not(s) == "keys and values are of another 16-bit type than its rows");
  model_shape narrow = plain();
  narrow.groups[0].head_dim = 16;
  for (layer_shape& l : narrow.layers) l.mixer.head_dim = 16;
  narrow.tables[0].frequencies.resize(8);
  s = whole(narrow);
  CHECK(why_not(s) == "");
  s.kv = kv_type::q8;
  CHECK(why_not(s) == "no kernel has keys and values of its sizes");
  s = whole(plain());
  s.layers[0].qkv.rows -= 4;
  CHECK(why_not(s) == "the sizes of its matrices are no multiples of 8");
}

namespace {

// A model of a dense layer and a mixture, with a shared expert or without.
decoder_shape mixed(bool shared, dtype experts = dtype::bf16) {
  model_shape m = plain();
  feed_forward& f = m.layers[1].mlp;
  f.router = {.experts = 16, .chosen = 4};
  f.inter = 96;
  f.shared = shared ? 512 : 0;
  decoder_shape s = whole(m);
  decoder_layer& l = s.layers[1];
  if (!shared) l.gate_up = l.down = {};
  l.experts.gate_up = {{nullptr, experts, f.width(), m.hidden}, 16, std::uint64_t{1} << 20};
  l.experts.down = {{nullptr, experts, m.hidden, f.inter}, 16, std::uint64_t{1} << 20};
  return s;
}

}  // namespace

TEST_CASE("cuda: a decoder takes mixtures of experts, clamped activations and sinks, or says why not") {
  for (const bool shared : {false, true})
    for (const dtype type : {dtype::bf16, dtype::q8_0, dtype::mxfp4, dtype::fp8}) {
      decoder_shape s = mixed(shared, type);
      s.model.layers[0].mixer.sinks = true;
      s.model.layers[1].mlp.kind = activation::clamped;
      CHECK(why_not(s) == "");
      CHECK(rows_type(s) == dtype::bf16);
    }
  decoder_shape s = mixed(false, dtype::f32);
  CHECK(why_not(s) == "it has matrices in f32");
  s = mixed(false, dtype::f16);
  s.layers[1].experts.gate_up.first.type = dtype::bf16;
  CHECK(why_not(s) == "its experts multiply another type than its rows");
  s = mixed(true);
  s.layers[1].experts.down.first.rows -= 4;
  CHECK(why_not(s) == "the sizes of its matrices are no multiples of 8");
  s = mixed(true);
  s.model.layers[1].mlp.shared = 84;
  CHECK(why_not(s) == "the width of a feed-forward is no multiple of 8");
  s = mixed(true);
  const float bias = 0;
  s.layers[1].down_bias = &bias;
  CHECK(why_not(s) == "its shared expert has a bias behind its last product");
  s = mixed(true);
  s.model.layers[1].mlp.router.experts = 2000;
  CHECK(why_not(s) == "a mixture has too many experts");
}

TEST_CASE("cuda: the plan of a decoder's memory counts what mixtures take, and nothing for other models") {
  const auto room = [](const decoder_shape& s, std::uint32_t rows) {
    return decoder_room_of(hopper_facts, s, rows, 64);
  };
  const decoder_room dense = room(whole(plain()), 1000);
  CHECK(dense.lists + dense.made + dense.shared == 0);
  const decoder_room of = room(mixed(true), 1000), without = room(mixed(false), 1000);
  CHECK(of.made == std::uint64_t{1000} * 4 * 256 * 4);
  CHECK(of.shared == std::uint64_t{1000} * 256 * 4);
  CHECK(without.shared == 0);
  CHECK(of.inner == std::uint64_t{1000} * 512 * 2);
  CHECK(of.bytes() - of.lists - of.made - of.shared == dense.bytes());
  CHECK(room(mixed(true), 2000).lists > of.lists);
  feed_forward f = mixed(true).model.layers[1].mlp;
  CHECK(dense_part(f).inter == 512);
  CHECK(!dense_part(f).is_mixture());
  CHECK(dense_part(mixed(false).model.layers[1].mlp).inter == 0);
}

TEST_CASE("cuda: one factor of all branches becomes the unit of the stream, others have a branch") {
  model_shape m = plain();
  m.norm_eps = 1e-5f;
  CHECK(units_of(m).unit == 1);
  CHECK(units_of(m).eps == m.norm_eps);
  CHECK(!has_branch(m, m.layers[0]));
  for (layer_shape& l : m.layers) l.branch_factor = 0.25f;
  CHECK(units_of(m).unit == 0.25f);
  CHECK(units_of(m).eps == Approx(16e-5));
  CHECK(!has_branch(m, m.layers[0]));
  m.layers[1].branch_factor = 0.5f;
  CHECK(units_of(m).unit == 1);
  CHECK(has_branch(m, m.layers[0]));
  CHECK(has_branch(m, m.layers[1]));
  m = plain();
  m.layers[1].norms = norm_place::behind;
  CHECK(units_of(m).unit == 1);
  CHECK(!has_branch(m, m.layers[0]));
  CHECK(has_branch(m, m.layers[1]));
}

TEST_CASE("cuda: layers without rotation share angles that turn nothing, and parts of heads leave a rest") {
  model_shape m = plain();
  CHECK(angle_tables_of(m) == 1);
  m.tables.push_back({std::vector<float>(12, 1.0f)});
  m.layers[1].mixer.rotary = 1;
  CHECK(angle_tables_of(m) == 2);
  CHECK(angle_table(m, m.layers[1].mixer) == 1);
  CHECK(rest_of(m, m.layers[0].mixer) == 0);
  CHECK(rest_of(m, m.layers[1].mixer) == 20);
  m.layers[0].mixer.rotary = -1;
  CHECK(angle_tables_of(m) == 3);
  CHECK(angle_table(m, m.layers[0].mixer) == 2);
  CHECK(rest_of(m, m.layers[0].mixer) == 0);
}

}  // namespace weir::tests::cuda_room_test
