#include "net/protocol/ignored_fields.h"

#include "core/shortened.h"
#include "net/protocol/request_fields.h"

namespace weir::net {

void ignored_fields::add(std::string_view name) {
  ++in_all_;
  if (names_.size() < most_names) names_.push_back(core::shortened(name));
}

std::vector<std::string> ignored_fields::told() const {
  std::vector<std::string> out = names_;
  if (in_all_ > names_.size()) out.push_back(fmt::format("and {} more", in_all_ - names_.size()));
  return out;
}

std::vector<core::grammar::warning> ignored_fields::warnings() const {
  std::vector<core::grammar::warning> out;
  for (const std::string& name : names_)
    out.push_back({name, fmt::format("unknown field '{}': it is ignored", name)});
  if (in_all_ > names_.size())
    out.push_back({"", fmt::format("{} more unknown fields are ignored", in_all_ - names_.size())});
  return out;
}

core::error ignored_fields::refusal() const { return unknown_field(names_.front()); }

}  // namespace weir::net
