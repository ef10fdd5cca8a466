// golden.h — a model's reference.json: what an independent float64 implementation says that it generates.
#pragma once

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/token.h"
#include "tests/support/data.h"

namespace weir::tests {

struct golden_generation {
  std::string prompt;  // empty where only ids are given
  std::vector<core::token_id> prompt_ids;
  std::vector<core::token_id> greedy_ids;
  std::vector<double> margins;  // between the best and the second best, at each step; may be empty
  // Mixtures of experts: between the last expert chosen and the first one not, the smallest in all layers and
  // at all positions that a step depends on; empty: no mixture.
  std::vector<double> router_margins;
  std::string text;  // of greedy_ids; may be empty

  // Tokens that a backend must reproduce: up to the first step whose margins are too small to tell.
  std::size_t certain(double least_margin = 2e-3, double least_router_margin = 1e-3) const {
    std::size_t count = greedy_ids.size();
    for (const auto& [all, least] :
         {std::pair{&margins, least_margin}, std::pair{&router_margins, least_router_margin}}) {
      const auto small = std::find_if(all->begin(), all->end(), [&](double m) { return m < least; });
      if (small != all->end()) count = std::min(count, static_cast<std::size_t>(small - all->begin()));
    }
    return count;
  }
};

struct golden_logits {
  std::size_t position = 0;         // index into golden::input_ids of the last token that was fed
  std::vector<core::token_id> ids;  // the twenty most likely
  std::vector<double> logits, logprobs;
};

struct golden {
  std::vector<golden_generation> generations;
  std::optional<golden_generation> long_greedy;
  double long_least_margin = 0;  // the smallest margin of long_greedy
  std::vector<core::token_id> input_ids;
  std::vector<golden_logits> at;
  std::vector<double> last_logits;  // the whole vector at the last of `at`; may be empty
};

namespace detail {

template <class T>
std::vector<T> list(const boost::json::object& o, const char* key) {
  std::vector<T> out;
  if (const auto* v = o.if_contains(key))
    for (const auto& item : v->as_array()) out.push_back(item.to_number<T>());
  return out;
}

inline std::string text(const boost::json::object& o, const char* key) {
  const auto* v = o.if_contains(key);
  return v && v->is_string() ? std::string(v->get_string()) : std::string();
}

inline golden_generation generation(const boost::json::object& o) {
  return {text(o, "prompt"),
          list<core::token_id>(o, "prompt_ids"),
          list<core::token_id>(o, "greedy_ids"),
          list<double>(o, "margins"),
          list<double>(o, "router_margins"),
          text(o, "text")};
}

}  // namespace detail

inline golden read_golden(const std::filesystem::path& model_dir) {
  const auto document = boost::json::parse(read_file(model_dir / "reference.json")).as_object();
  golden g;
  for (const auto& one : document.at("generations").as_array())
    g.generations.push_back(detail::generation(one.as_object()));
  if (const auto* all = document.if_contains("long_greedy")) {
    g.long_greedy = detail::generation(all->as_object());
    g.long_least_margin = all->as_object().at("min_top1_top2_margin").to_number<double>();
  }
  const auto& logits = document.at("logits").as_object();
  g.input_ids = detail::list<core::token_id>(logits, "input_ids");
  for (const auto& one : logits.at("positions").as_array()) {
    const auto& o = one.as_object();
    g.at.push_back({o.at("position").to_number<std::size_t>(), detail::list<core::token_id>(o, "ids"),
                    detail::list<double>(o, "logits"), detail::list<double>(o, "logprobs")});
  }
  g.last_logits = detail::list<double>(logits, "full_logits_last_position");
  return g;
}

}  // namespace weir::tests
