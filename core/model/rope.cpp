#include "core/model/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/shortened.h"

namespace weir::core {
namespace json = boost::json;
namespace {

struct named_type {
  std::string_view name;
  rope_type type;
};
// dynamic turns as plain does up to the model's context, and no sequence is longer. mrope turns text as plain
// does. su is the first name of longrope.
constexpr std::array types{
    named_type{"default", rope_type::plain},
    named_type{"mrope", rope_type::plain},
    named_type{"dynamic", rope_type::plain},
    named_type{"linear", rope_type::linear},
    named_type{"llama3", rope_type::llama3},
    named_type{"yarn", rope_type::yarn},
    named_type{"longrope", rope_type::longrope},
    named_type{"su", rope_type::longrope},
    named_type{"proportional", rope_type::proportional},
};
constexpr std::size_t most_divisors = 512;  // pairs of the largest head

void read_factor(json_reader& in, rope_config& rope) {
  rope.factor = in.number("factor").value_or(rope.factor);
  if (!(rope.factor >= 1)) bad(in, "'factor' must be at least 1");
}

// llama3 mixes plain and scaled frequencies between two bounds. The bounds must differ, since the mix divides
// by their difference.
void read_llama3(json_reader& in, rope_config& rope) {
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
    if (!in.has(key)) bad(in, fmt::format("'{}' is missing", key));
  read_factor(in, rope);
  rope.low_freq_factor = in.number("low_freq_factor").value_or(1);
  rope.high_freq_factor = in.number("high_freq_factor").value_or(4);
  if (!(rope.low_freq_factor > 0 && rope.high_freq_factor > rope.low_freq_factor &&
        rope.original_context >= 1))
    bad(in, "needs 0 < low_freq_factor < high_freq_factor and original_max_position_embeddings >= 1");
}

void read_attention_factor(json_reader& in, rope_config& rope) {
  const auto given = in.number("attention_factor");
  if (given && !(*given > 0)) bad(in, "'attention_factor' must be above 0");
  rope.attention_factor = given.value_or(0);
}

void read_yarn(json_reader& in, rope_config& rope) {
  if (!in.has("factor")) bad(in, "'factor' is missing");
  read_factor(in, rope);
  read_attention_factor(in, rope);
  rope.beta_fast = in.number("beta_fast").value_or(32);
  rope.beta_slow = in.number("beta_slow").value_or(1);
  rope.mscale = in.number("mscale").value_or(0);
  rope.mscale_all_dim = in.number("mscale_all_dim").value_or(0);
  rope.truncate = in.boolean("truncate").value_or(true);
  if (!(rope.original_context >= 1 && rope.beta_slow > 0 && rope.beta_fast >= rope.beta_slow &&
        rope.theta != 1))
    bad(in,
        "needs original_max_position_embeddings >= 1, 0 < beta_slow <= beta_fast and a rope_theta that is "
        "not 1");
}

std::vector<float> read_divisors(json_reader& in, const char* key) {
  std::vector<float> out;
  const json::value* v = in.find(key);
  const bool list = v && v->is_array() && v->get_array().size() <= most_divisors;
  for (std::size_t i = 0; list && i < v->get_array().size(); ++i) {
    const json::value& each = v->get_array()[i];
    const double x = each.is_number() ? each.to_number<double>() : 0;
    if (!(x > 0 && x < 1e30)) return bad(in, fmt::format("'{}' must be numbers above 0", key)), out;
    out.push_back(static_cast<float>(x));
  }
  if (out.empty()) bad(in, fmt::format("'{}' must be a list of up to {} numbers", key, most_divisors));
  return out;
}

void read_longrope(json_reader& in, double context, rope_config& rope) {
  if (!(rope.original_context > 1))
    return bad(in, "'original_max_position_embeddings' is missing, or not above 1");
  rope.factor = context / rope.original_context;
  if (in.has("factor")) read_factor(in, rope);
  read_attention_factor(in, rope);
  rope.short_divisors = read_divisors(in, "short_factor");
  rope.long_divisors = read_divisors(in, "long_factor");
  rope.short_mscale = in.number("short_mscale").value_or(0);
  rope.long_mscale = in.number("long_mscale").value_or(0);
  if (rope.short_divisors.size() != rope.long_divisors.size())
    bad(in, "'short_factor' and 'long_factor' have different lengths");
}

// YaRN: the pair that makes `rotations` turns within the original context, as a real number.
double pair_of(const rope_config& rope, double rotations, double turned) {
  return turned * std::log(rope.original_context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

// YaRN: how much of pair i's frequency is divided by the factor, from 0 to 1.
struct ramp {
  double low, high;
  ramp(const rope_config& rope, double turned)
      : low(pair_of(rope, rope.beta_fast, turned)), high(pair_of(rope, rope.beta_slow, turned)) {
    if (rope.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0);
    high = std::min(high, turned - 1);
    if (low == high) high += 0.001;
  }
  float at(std::size_t i) const {
    const auto x = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    return std::clamp(x, 0.0f, 1.0f);
  }
};

double yarn_growth(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

double factor_of_table(const rope_config& rope, bool takes_long) {
  if (const double own = takes_long ? rope.long_mscale : rope.short_mscale; own > 0) return own;
  if (rope.attention_factor > 0) return rope.attention_factor;
  if (rope.type == rope_type::longrope)
    return rope.factor <= 1 ? 1 : std::sqrt(1 + std::log(rope.factor) / std::log(rope.original_context));
  if (rope.type != rope_type::yarn) return 1;
  if (rope.mscale > 0 && rope.mscale_all_dim > 0)
    return yarn_growth(rope.factor, rope.mscale) / yarn_growth(rope.factor, rope.mscale_all_dim);
  return yarn_growth(rope.factor, 1);
}

float llama3_frequency(const rope_config& rope, float plain) {
  const auto slow = static_cast<float>(plain / rope.factor);
  const double rotations = rope.original_context * plain / (2 * std::numbers::pi);
  if (rotations > rope.high_freq_factor) return plain;
  if (rotations < rope.low_freq_factor) return slow;
  const double mix = (rotations - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return static_cast<float>((1 - mix) * slow + mix * plain);
}

}  // namespace

std::uint32_t rope_config::turned(std::uint32_t head_dim) const noexcept {
  return type == rope_type::proportional ? head_dim : static_cast<std::uint32_t>(head_dim * partial);
}

void read_rope_object(json_reader& in, double context, rope_config& rope) {
  const auto old_key = in.text("type"), key = in.text("rope_type");
  const std::string name = key ? *key : old_key.value_or("default");
  const auto* known = std::ranges::find(types, name, &named_type::name);
  if (known == types.end())
    return in.fail(errc::not_supported,
                   fmt::format("{}: rope type '{}' is not supported yet", in.what(), shortened(name)));
  rope.type = known->type;
  rope.theta = in.number("rope_theta").value_or(rope.theta);
  rope.partial = in.number("partial_rotary_factor").value_or(rope.partial);
  rope.original_context = in.number("original_max_position_embeddings").value_or(rope.original_context);
  rope.growth = in.number("llama_4_scaling_beta").value_or(0);
  if (rope.growth != 0 &&
      !(rope.growth > 0 && rope.original_context >= 1 && rope.original_context < 1u << 30))
    bad(in, "'llama_4_scaling_beta' must be above 0, beside an original_max_position_embeddings");
  if (rope.type == rope_type::llama3) read_llama3(in, rope);
  if (rope.type == rope_type::yarn) read_yarn(in, rope);
  if (rope.type == rope_type::longrope) read_longrope(in, context, rope);
  if (rope.type == rope_type::linear && !in.has("factor")) bad(in, "'factor' is missing");
  if (rope.type == rope_type::linear || rope.type == rope_type::proportional) read_factor(in, rope);
}

kernels::rotary_table make_rotary_table(const rope_config& rope, std::uint32_t head_dim,
                                        std::uint32_t context) {
  const std::uint32_t turned = rope.turned(head_dim);
  const bool takes_long = rope.by_context() && rope.takes_long(context);
  const std::vector<float>& extended = takes_long ? rope.long_divisors : rope.short_divisors;
  const auto theta = static_cast<float>(rope.theta);
  const ramp slow_part(rope, turned);
  kernels::rotary_table out{std::vector<float>(turned / 2),
                            static_cast<float>(factor_of_table(rope, takes_long))};
  for (std::uint32_t i = 0; i < turned / 2; ++i) {
    const float power = std::pow(theta, static_cast<float>(2 * i) / static_cast<float>(turned));
    const float plain = 1.0f / power;
    float& f = out.frequencies[i];
    switch (rope.type) {
      case rope_type::plain:
        f = plain;
        break;
      case rope_type::linear:
        f = static_cast<float>(plain / rope.factor);
        break;
      case rope_type::llama3:
        f = llama3_frequency(rope, plain);
        break;
      case rope_type::yarn:
        f = plain * (1 - slow_part.at(i)) +
            1.0f / (static_cast<float>(rope.factor) * power) * slow_part.at(i);
        break;
      case rope_type::longrope:
        f = 1.0f / (extended[i] * power);
        break;
      case rope_type::proportional:
        f = i < static_cast<std::uint32_t>(rope.partial * head_dim / 2)
                ? static_cast<float>(plain / rope.factor)
                : 0;
    }
    if (!rope.divisors.empty()) f /= rope.divisors[i];
  }
  return out;
}

}  // namespace weir::core
