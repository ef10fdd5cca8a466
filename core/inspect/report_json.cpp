#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdlib>

#include "core/cache/page.h"
#include "core/inspect/layer_kinds.h"
#include "core/inspect/report_text.h"
#include "core/inspect/wording.h"
#include "core/json_line.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

namespace json = boost::json;

json::string json_string(std::string_view s) { return json::string(to_valid_utf8(s)); }

// A number as it was given, 1e-05, and not as f32 rounds it.
double as_written(float x) { return std::strtod(fmt::format("{}", x).c_str(), nullptr); }

json::array json_strings(const std::vector<std::string>& all) {
  json::array out;
  for (const auto& s : all) out.push_back(json_string(s));
  return out;
}

json::object json_of(const model_sizes& s) {
  json::object out;
  const auto add = [&](const char* name, std::uint64_t n) {
    if (n != 0) out[name] = n;
  };
  add("layers", s.layers);
  add("hidden", s.hidden);
  add("heads", s.heads);
  add("kv_heads", s.kv_heads);
  add("head_dim", s.head_dim);
  add("inter", s.inter);
  add("vocab", s.vocab);
  add("experts", s.experts);
  add("experts_used", s.used);
  return out;
}

json::object experts_of(const kernels::feed_forward& mlp) {
  const kernels::expert_router& r = mlp.router;
  return {{"count", r.experts},
          {"used", r.chosen},
          {"scores", r.sigmoid ? "sigmoid" : "softmax"},
          {"choice_bias", r.choice_bias},
          {"renormalised", r.renormalised},
          {"factor", as_written(r.factor)},
          {"limit", as_written(mlp.limit)},
          {"shared", mlp.shared},
          {"shared_gate", mlp.shared_gate}};
}

json::object json_of(const layer_kind& k) {
  const auto& a = k.shape.mixer;
  json::object out{{"count", k.at.size()},
                   {"first", k.at.front()},
                   {"window", a.rule.window},
                   {"rope", a.rotary},
                   {"heads", a.heads},
                   {"kv_heads", a.kv_heads},
                   {"head_dim", a.head_dim},
                   {"head_norms", name_of(a.norms)},
                   {"gated_attention", a.gated},
                   {"score_scale", as_written(a.rule.scale)},
                   {"score_cap", as_written(a.rule.cap)},
                   {"score_growth", as_written(a.rule.growth)},
                   {"inter", k.shape.mlp.inter},
                   {"activation", name_of(k.shape.mlp.kind)},
                   {"gated", k.shape.mlp.gated},
                   {"norms", name_of(k.shape.norms)},
                   {"branch_factor", as_written(k.shape.branch_factor)}};
  if (a.sinks) out["sinks"] = true;
  if (k.shape.mlp.is_mixture()) out["experts"] = experts_of(k.shape.mlp);
  return out;
}

json::array ropes_of(const model_config& c) {
  json::array out;
  for (std::size_t i = 0; i < c.ropes.size(); ++i) {
    const rope_config& r = c.ropes[i];
    json::object o{{"type", name_of(r.type)},
                   {"theta", r.theta},
                   {"factor", r.factor},
                   {"original_context", r.original_context},
                   {"turned", r.turned(c.shape.layers.front().mixer.head_dim)},
                   {"cosine_factor", as_written(c.shape.tables[i].factor)}};
    if (r.by_context()) o["table"] = r.takes_long(c.context) ? "long" : "short";
    out.push_back(std::move(o));
  }
  return out;
}

void add_config(json::object& out, const model_report& m) {
  const model_config& c = *m.config;
  out["layers"] = json::array();
  for (const auto& k : layer_kinds(c.shape.layers)) out["layers"].as_array().push_back(json_of(k));
  out["ropes"] = ropes_of(c);
  out["norms"] = json::object{{"kind", c.shape.centred_norms ? "layer" : "rms"},
                              {"eps", as_written(c.shape.norm_eps)},
                              {"plus_one", c.stored.plus_one},
                              {"bias", c.stored.norm_bias}};
  out["biases"] =
      json::object{{"qkv", c.stored.qkv_bias}, {"out", c.stored.out_bias}, {"mlp", c.stored.mlp_bias}};
  out["head"] = json::object{{"tied", c.stored.tied},
                             {"type", json_string(m.head_type)},
                             {"embedding_type", json_string(m.embedding_type)},
                             {"embedding_factor", as_written(c.shape.embed_factor)},
                             {"logit_factor", as_written(c.shape.logit_factor)},
                             {"logit_cap", as_written(c.shape.logit_cap)}};
  if (c.quantised.form == quant_form::plain) return;
  auto& q = out["quantised"] =
      json::object{{"form", name_of(c.quantised.form)}, {"group", c.quantised.group}};
  if (c.quantised.bits != 0) q.as_object()["bits"] = c.quantised.bits;
}

json::object json_of(const tokenizer_report& t) {
  json::array special;
  for (const named_token& n : t.special)
    special.push_back(json::object{{"role", json_string(n.role)},
                                   {"text", json_string(n.spelling)},
                                   {"id", n.id < 0 ? json::value() : json::value(n.id)}});
  return {{"kind", t.kind},
          {"vocab", t.vocab},
          {"control", t.control},
          {"adds_bos", t.adds_bos},
          {"special", std::move(special)}};
}

json::object json_of(const template_report& c) {
  if (!c.refused.empty()) return {{"refused", json_string(c.refused)}};
  json::object out{{"origin", json_string(c.origin)}, {"bytes", c.bytes}};
  out["calls"] = c.format.has_calls() ? json::value(c.format.calls.name) : json::value();
  out["reasoning"] = c.format.has_reasoning()
                         ? json::value(json::object{{"open", json_string(c.format.reasoning.open)},
                                                    {"close", json_string(c.format.reasoning.close)}})
                         : json::value();
  return out;
}

json::value json_number(float x) { return as_written(x); }
json::value json_number(std::uint32_t n) { return n; }

json::object sampling_of(const sampling_params& p) {
  json::object out;
  visit_sampling([&](const sampling_field& f, auto, auto to) {
    if constexpr (requires { json_number(p.*to); })
      if (f.file) out[f.name] = json_number(p.*to);
  });
  return out;
}

json::object json_of(const device_report& d) {
  json::object out{{"device", d.device}};
  if (d.wrong) {
    out["refused"] = json_string(d.wrong->message);
    return out;
  }
  out.insert({{"weights", d.lines.weights},
              {"workspaces", d.lines.workspaces},
              {"runtime", d.lines.runtime},
              {"page", d.page_bytes},
              {"page_tokens", page_tokens},
              {"token", d.page_bytes / page_tokens},
              {"pages", d.lines.pages},
              {"kv_tokens", d.kv_tokens},
              {"context", d.context},
              {"free", d.free},
              {"fits", d.lacks.empty()}});
  if (!d.lacks.empty()) out["lacks"] = d.lacks;
  if (!d.assumed.empty()) out["assumed"] = json_strings(d.assumed);
  return out;
}

}  // namespace

std::string report_json(const model_report& m) {
  json::object out{
      {"weir_inspect", 1},
      {"path", json_string(m.path)},
      {"container", m.container},
      {"served", m.served()},
      {"refused", json_strings(m.refused)},
      {"notes", json_strings(m.notes)},
      {"architecture", json_string(m.architecture)},
      {"family", json_string(m.row)},
      {"wrapped", m.wrapped},
      {"parameters", m.parameters},
      {"sizes", json_of(m.sizes)},
      {"context", json::object{{"own", m.sizes.context}, {"served", m.config ? m.config->context : 0}}}};
  if (m.config) add_config(out, m);
  if (!m.keys.empty()) out["keys"] = m.keys;
  json::array tensors;
  for (const tensor_group& g : m.tensors)
    tensors.push_back(
        json::object{{"type", json_string(g.type)}, {"tensors", g.tensors}, {"bytes", g.bytes}});
  out["tensors"] = std::move(tensors);
  if (m.tokens) out["tokenizer"] = json_of(*m.tokens);
  if (m.chat) out["template"] = json_of(*m.chat);
  if (m.generation) {
    json::array stops;
    for (const token_id id : m.generation->stop_ids) stops.push_back(id);
    out["stop_ids"] = std::move(stops);
    out["sampling"] = sampling_of(m.generation->defaults);
  }
  json::array devices;
  for (const device_report& d : m.devices) devices.push_back(json_of(d));
  out["devices"] = std::move(devices);
  return json_line(out);
}

}  // namespace weir::core
