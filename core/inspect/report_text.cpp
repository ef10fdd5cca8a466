#include "core/inspect/report_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/cache/page.h"
#include "core/inspect/layer_kinds.h"
#include "core/inspect/wording.h"
#include "core/json_line.h"
#include "core/size_text.h"
#include "core/text/answer/format_text.h"
#include "core/visible.h"

namespace weir::core {
namespace {

constexpr std::size_t label_width = 14, longest_text = 92;

// Lines of a label and a text.
class label_table {
 public:
  void add(std::string_view label, std::string_view text) {
    std::string rest = one_line(text);
    std::string shown = one_line(label);
    while (!rest.empty()) {
      const std::size_t end = cut_of(rest);
      lines_.push_back(fmt::format("{:<{}}{}", shown, label_width, rest.substr(0, end)));
      rest.erase(0, rest.find_first_not_of(' ', end));
      shown.clear();
    }
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  // Where the line ends: at a space, or where there is none in a line's length, at the next one.
  static std::size_t cut_of(const std::string& text) {
    if (text.size() <= longest_text) return text.size();
    std::size_t at = text.rfind(' ', longest_text);
    if (at == text.npos || at == 0) at = text.find(' ', longest_text);
    return at == text.npos ? text.size() : at;
  }
  std::vector<std::string> lines_;
};

// A list of phrases with commas.
class phrases {
 public:
  void add(std::string_view text) { out_.append(out_.empty() ? "" : ", ").append(text); }
  void add_if(bool really, std::string_view text) {
    if (really) add(text);
  }
  const std::string& text() const { return out_; }

 private:
  std::string out_;
};

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

void add_family(label_table& t, const model_report& m) {
  std::string text = m.architecture.empty() ? "not named" : m.architecture;
  if (!m.row.empty() && m.row != m.architecture) text += ", served as " + m.row;
  if (m.row.empty()) text += ", which is not served";
  if (m.wrapped) text += ", the text model of one that also sees or hears";
  if (!m.architecture.empty() || !m.row.empty()) t.add("family", text);
}

void add_sizes(label_table& t, const model_report& m) {
  const model_sizes& s = m.sizes;
  phrases size, attention;
  if (m.parameters != 0) size.add(short_count(m.parameters) + " parameters");
  const auto add = [](phrases& to, const char* name, std::uint64_t n) {
    if (n != 0) to.add(fmt::format("{} {}", name, grouped(n)));
  };
  if (!m.config) add(size, "layers", s.layers);
  add(size, "hidden", s.hidden);
  add(size, "inner", s.inter);
  add(size, "vocabulary", s.vocab);
  if (s.experts != 0)
    size.add(s.used != 0 ? fmt::format("{} experts of which a token has {}", s.experts, s.used)
                         : fmt::format("{} experts", s.experts));
  if (!size.text().empty()) t.add("size", size.text());
}

void add_attention(label_table& t, const model_report& m) {
  const model_sizes& s = m.sizes;
  if (s.heads == 0) return;
  phrases out;
  out.add(fmt::format("{} heads{}{}", s.heads, s.head_dim != 0 ? fmt::format(" of {}", s.head_dim) : "",
                      s.kv_heads != 0 ? fmt::format(" on {} of keys and values", s.kv_heads) : ""));
  if (m.config) {
    const auto& a = m.config->shape.layers.front().mixer;
    const auto& stored = m.config->stored;
    out.add_if(a.norms == kernels::head_norms::each, "a norm of each head of queries and keys");
    out.add_if(a.norms == kernels::head_norms::own,
               "a norm of each head of queries and keys, with own weights");
    out.add_if(a.norms == kernels::head_norms::row, "a norm of all queries and one of all keys");
    out.add_if(stored.qkv_bias, "biases of queries, keys and values");
    out.add_if(stored.out_bias, "biases of the output");
    out.add_if(a.gated, "gated");
    out.add_if(a.sinks, "sinks");
    if (!nearly(a.rule.scale, 1 / std::sqrt(1.0 * a.head_dim)))
      out.add(fmt::format("scores × {:.6g}", a.rule.scale));
    if (a.rule.cap != 0) out.add(fmt::format("scores bounded by {:g}", a.rule.cap));
    if (a.rule.growth != 0)
      out.add(fmt::format("scores grow by {:g} ln(1 + position / {})", a.rule.growth, a.rule.growth_unit));
  }
  t.add("attention", out.text());
}

void add_feed_forward(label_table& t, const model_config& c) {
  const kernels::layer_shape& l = c.shape.layers.front();
  phrases out;
  out.add(name_of(l.mlp.kind));
  out.add(l.mlp.gated ? "gated" : "without a gate");
  out.add_if(c.stored.mlp_bias, "with biases");
  if (l.branch_factor != 1) out.add(fmt::format("added × {:g}", l.branch_factor));
  t.add("feed-forward", out.text());
}

void add_experts(label_table& t, const model_config& c) {
  const kernels::feed_forward* m = mixture_of(c.shape);
  if (!m) return;
  const kernels::expert_router& r = m->router;
  phrases out;
  out.add(fmt::format("{} of inner {}, {} for a token", r.experts, m->inter, r.chosen));
  out.add(r.sigmoid ? "sigmoid scores" : "softmax scores");
  out.add_if(r.choice_bias, "a bias for the choice");
  out.add_if(r.renormalised, "renormalised");
  if (r.factor != 1) out.add(fmt::format("weights × {:g}", r.factor));
  if (m->limit != 0) out.add(fmt::format("limit {:g}", m->limit));
  out.add_if(c.stored.expert_bias, "with biases");
  if (m->shared != 0)
    out.add(fmt::format("a shared expert of {}{}", m->shared, m->shared_gate ? ", gated" : ""));
  t.add("experts", out.text());
}

void add_norms(label_table& t, const model_config& c) {
  static constexpr std::string_view where[] = {
      "before attention and feed-forward", "behind attention and feed-forward",
      "before and behind attention and feed-forward", "one before both, which are side by side"};
  phrases out;
  out.add(fmt::format("{} ({:g})", c.shape.centred_norms ? "LayerNorm" : "RMS", c.shape.norm_eps));
  out.add(where[static_cast<std::size_t>(c.shape.layers.front().norms)]);
  out.add_if(c.stored.plus_one, "1 + weight");
  out.add_if(c.stored.norm_bias, "with biases");
  t.add("norms", out.text());
}

std::string rope_text(const model_config& c, std::size_t index) {
  const rope_config& r = c.ropes[index];
  const std::uint32_t head_dim = c.shape.layers.front().mixer.head_dim;
  phrases out;
  out.add(name_of(r.type));
  out.add("theta " + grouped(static_cast<std::uint64_t>(r.theta)));
  if (r.factor != 1) out.add(fmt::format("factor {:g}", r.factor));
  if (r.original_context != 0 && r.type != rope_type::plain)
    out.add(fmt::format("original context {}", grouped(static_cast<std::uint64_t>(r.original_context))));
  if (r.by_context())
    out.add(fmt::format("{} table at this context", r.takes_long(c.context) ? "long" : "short"));
  out.add_if(!r.divisors.empty(), "divisors of the file");
  if (r.turned(head_dim) != head_dim)
    out.add(fmt::format("{} of {} elements turn", r.turned(head_dim), head_dim));
  if (const float f = c.shape.tables[index].factor; f != 1) out.add(fmt::format("cosines × {:.5g}", f));
  return out.text();
}

void add_ropes(label_table& t, const model_config& c) {
  const auto used = used_ropes(c);
  if (used.empty()) t.add("rope", "nothing turns");
  for (const std::size_t i : used)
    t.add(used.size() == 1 ? "rope" : fmt::format("rope {}", i + 1), rope_text(c, i));
}

void add_logits(label_table& t, const model_report& m) {
  const auto& shape = m.config->shape;
  phrases out;
  out.add(m.config->stored.tied ? "tied to the embedding" : "a matrix of its own");
  if (!m.head_type.empty()) out.add(m.head_type);
  if (!m.config->stored.tied && !m.embedding_type.empty() && m.embedding_type != m.head_type)
    out.add("embedding " + m.embedding_type);
  if (shape.embed_factor != 1) out.add(fmt::format("embedding × {:g}", shape.embed_factor));
  out.add_if(shape.embed_norm, "embedding normed");
  if (shape.logit_factor != 1) out.add(fmt::format("logits × {:g}", shape.logit_factor));
  if (shape.logit_cap != 0) out.add(fmt::format("logits bounded by {:g}", shape.logit_cap));
  t.add("head", out.text());
}

void add_context(label_table& t, const model_report& m) {
  if (m.sizes.context == 0) return;
  std::string text = grouped(m.sizes.context) + " tokens";
  if (m.config && m.config->context != m.sizes.context)
    text += fmt::format(", of which {} are served", grouped(m.config->context));
  t.add("context", text);
}

std::string counts_text(const boost::json::value& v) {
  const auto* counts = v.if_object();
  if (!counts) return v.is_string() ? std::string(v.get_string()) : json_line(v);
  phrases out;
  for (const auto& [value, count] : *counts)
    out.add(fmt::format("{} {}", json_line(count), std::string_view(value)));
  return out.text();
}

void add_keys(label_table& t, const model_report& m) {
  const char* label = "it also says";
  for (const auto& [key, value] : m.keys)
    t.add(std::exchange(label, ""), fmt::format("{} {}", std::string_view(key), counts_text(value)));
}

void add_tensors(label_table& t, const model_report& m) {
  if (m.tensors.empty()) return;
  std::uint64_t all = 0, bytes = 0;
  phrases out;
  for (const tensor_group& g : m.tensors) {
    all += g.tensors;
    bytes += g.bytes;
    out.add(fmt::format("{} {} ({})", g.tensors, g.type, size_text(g.bytes)));
  }
  const std::string sum = fmt::format("{} in {}: ", grouped(all), size_text(bytes));
  t.add("tensors", (m.tensors.size() == 1 ? "" : sum) + out.text());
  if (!m.config || m.config->quantised.form == quant_form::plain) return;
  const quant_config& q = m.config->quantised;
  phrases words;
  words.add(name_of(q.form));
  if (q.bits != 0) words.add(fmt::format("{} bits", q.bits));
  if (q.group != 0) words.add(fmt::format("groups of {}", q.group));
  t.add("quantised", words.text());
}

void add_tokenizer(label_table& t, const tokenizer_report& k) {
  phrases out, special;
  if (!k.kind.empty()) out.add(k.kind);
  out.add(fmt::format("{} tokens", grouped(k.vocab)));
  out.add(fmt::format("{} of them control tokens", grouped(k.control)));
  out.add(k.adds_bos ? "a raw prompt begins with bos" : "a raw prompt gets no bos");
  t.add("tokenizer", out.text());
  for (const named_token& n : k.special)
    special.add(n.id < 0 ? fmt::format("{} {} (not in the vocabulary)", n.role, n.spelling)
                         : fmt::format("{} {} ({})", n.role, n.spelling, n.id));
  if (!special.text().empty()) t.add("special", special.text());
}

void add_chat(label_table& t, const template_report& c) {
  if (!c.refused.empty()) return t.add("template", c.refused);
  t.add("template", fmt::format("{}, {} bytes", c.origin, grouped(c.bytes)));
  t.add("calls", calls_text(c.format));
  t.add("reasoning", reasoning_text(c.format));
}

void add_generation(label_table& t, const model_report& m) {
  phrases stops, sampling;
  for (const auto& [id, piece] : m.stops) stops.add(fmt::format("{} ({})", piece, id));
  if (!m.stops.empty()) t.add("stops at", stops.text());
  if (m.generation && m.stops.empty()) t.add("stops at", "no token of its own");
  if (!m.generation) return;
  const sampling_params neutral;
  visit_sampling([&](const sampling_field& f, auto, auto to) {
    if constexpr (requires { fmt::format("{:g}", static_cast<double>(neutral.*to)); })
      if (f.file && m.generation->defaults.*to != neutral.*to)
        sampling.add(fmt::format("{} {:g}", f.name, static_cast<double>(m.generation->defaults.*to)));
  });
  t.add("sampling", sampling.text().empty() ? "neutral" : sampling.text());
}

std::string room_text(const device_report& d) {
  if (!d.lacks.empty()) return d.lacks;
  std::string out = d.free == 0 ? "" : size_text(d.free) + " free: ";
  out += fmt::format("a pool of {} tokens ({})", grouped(d.kv_tokens), size_text(d.lines.pages));
  return out + fmt::format(", sequences of up to {}", grouped(d.context));
}

void add_device(label_table& t, const device_report& d) {
  if (d.wrong) return t.add(d.device, d.wrong->message);
  t.add(d.device, fmt::format("weights {}, workspaces {}{}; a token {}, a page of {} tokens {}",
                              size_text(d.lines.weights), size_text(d.lines.workspaces),
                              d.lines.runtime != 0 ? ", runtime " + size_text(d.lines.runtime) : "",
                              size_text(d.page_bytes / page_tokens), page_tokens, size_text(d.page_bytes)));
  t.add("", room_text(d));
  for (const std::string& a : d.assumed) t.add("", "assumed: " + a);
}

}  // namespace

std::vector<std::string> report_lines(const model_report& m) {
  label_table t;
  t.add("model", m.container.empty() ? m.path : fmt::format("{} ({})", m.path, m.container));
  t.add("served", m.served() ? "yes" : "no");
  for (const std::string& why : m.refused) t.add("refused", why);
  add_family(t, m);
  add_sizes(t, m);
  add_attention(t, m);
  if (m.config) {
    t.add("layers", layers_text(layer_kinds(m.config->shape.layers)));
    add_norms(t, *m.config);
    add_feed_forward(t, *m.config);
    add_experts(t, *m.config);
    add_ropes(t, *m.config);
  }
  add_context(t, m);
  if (m.config) add_logits(t, m);
  add_keys(t, m);
  add_tensors(t, m);
  for (const std::string& note : m.notes) t.add("note", note);
  if (m.tokens) add_tokenizer(t, *m.tokens);
  if (m.chat) add_chat(t, *m.chat);
  add_generation(t, m);
  for (const device_report& d : m.devices) add_device(t, d);
  return t.take();
}

}  // namespace weir::core
