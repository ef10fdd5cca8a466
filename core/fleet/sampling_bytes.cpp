#include "core/fleet/sampling_bytes.h"

#include "core/job_limits.h"
#include "core/sample/dry.h"

namespace weir::core::fleet {
namespace {

using bias_list = shared_list<std::pair<token_id, float>>;
using breakers = std::shared_ptr<const dry_breakers>;

class field_writer {
 public:
  explicit field_writer(byte_writer& to) : to_(to) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void value(T v) { to_(v); }
  void value(const token_set& ids) { tokens(ids); }
  void value(const shared_list<token_id>& ids) { tokens(ids); }
  void value(const bias_list& all) {
    to_.list(all, 0, [&](const auto& bias) {
      to_.varint(static_cast<std::uint64_t>(bias.first));
      to_(bias.second);
    });
  }
  void value(const breakers& b) {
    to_(b != nullptr);
    if (b) to_.list(b->texts, 0, [&](const std::string& s) { to_(s); });
  }

 private:
  template <class List>
  void tokens(const List& ids) {
    to_.list(ids, 0, [&](token_id id) { to_.varint(static_cast<std::uint64_t>(id)); });
  }
  byte_writer& to_;
};

// A number that a float holds is in its range if it is the float next to an end of it.
bool holds(const number_range& r, double v) {
  const auto low = static_cast<float>(r.low), high = static_cast<float>(r.high);
  const auto f = static_cast<float>(v);
  return (r.above_low ? f > low : f >= low) && f <= high;
}

class field_reader {
 public:
  explicit field_reader(byte_reader& from) : from_(from) {}

  // Whether `v`, which was read, is right.
  template <class T>
  requires std::is_floating_point_v<T> || std::is_signed_v<T>
  bool value(const sampling_field& f, T& v) { return read(v) && in_range(f, static_cast<double>(v)); }
  bool value(const sampling_field& f, std::uint32_t& v) { return read(v) && in_range(f, v); }
  bool value(const sampling_field&, std::uint64_t& v) { return read(v); }
  bool value(const sampling_field&, bool& v) { return read(v); }
  bool value(const sampling_field&, token_set& ids) {
    std::vector<token_id> all;
    if (!tokens(all, most_listed_tokens)) return false;
    ids = token_set(std::move(all));
    return true;
  }
  // Words: how many tokens a word has, then these.
  bool value(const sampling_field&, shared_list<token_id>& words) {
    std::vector<token_id> all;
    if (!tokens(all, 4 * most_listed_tokens)) return false;
    for (std::size_t at = 0; at < all.size();) {
      const auto size = static_cast<std::size_t>(all[at]);
      if (size == 0 || size > all.size() - at - 1) return false;
      at += size + 1;
    }
    words = std::move(all);
    return true;
  }
  bool value(const sampling_field& f, bias_list& biases) {
    std::vector<std::pair<token_id, float>> all;
    bool fine = true;
    from_.list(all, most_listed_tokens, [&](auto& bias) {
      bias.first = from_.token();
      from_(bias.second);
      fine = fine && holds(f.range, bias.second);
    });
    biases = std::move(all);
    return fine && !from_.failed();
  }
  bool value(const sampling_field&, breakers& b) {
    bool there = false;
    if (!read(there)) return false;
    if (!there) return true;
    auto made = std::make_shared<dry_breakers>();
    from_.list(made->texts, most_breakers, [&](std::string& s) { from_(s); });
    for (const std::string& s : made->texts)
      if (s.empty() || s.size() > longest_breaker) return false;
    b = std::move(made);
    return !from_.failed();
  }

 private:
  template <class T>
  bool read(T& v) {
    from_(v);
    return !from_.failed();
  }
  static bool in_range(const sampling_field& f, double v) {
    return holds(f.range, v) || (f.file && holds(*f.file, v));
  }
  bool tokens(std::vector<token_id>& all, std::size_t most) {
    from_.list(all, most, [&](token_id& id) { id = from_.token(); });
    return !from_.failed();
  }
  byte_reader& from_;
};

}  // namespace

void write_sampling(byte_writer& to, const sampling_params& s) {
  to(s.choice);
  field_writer out(to);
  visit_sampling([&](const sampling_field&, auto, auto used) { out.value(s.*used); });
}

result<void> read_sampling(byte_reader& from, sampling_params& s) {
  from(s.choice);
  field_reader in(from);
  const char* wrong = nullptr;
  visit_sampling([&](const sampling_field& f, auto, auto used) {
    if (!wrong && !from.at_end() && !in.value(f, s.*used)) wrong = f.name;
  });
  if (wrong) return bad_param(wrong, "{} has no value that it may have", wrong);
  if (from.failed()) return bad_param("choice", "the sampling fields are cut");
  return {};
}

}  // namespace weir::core::fleet
