#include "net/access/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "actors/token_allowance.h"

namespace weir::net {
namespace {

constexpr std::size_t longest_name = 64, longest_model = 256, most_models = 64, longest_line = 16 * 1024;
constexpr std::int64_t most_jobs = 1 << 16, furthest_priority = 1'000'000;
constexpr std::int64_t most_tokens = actors::token_allowance::most_per_min;
constexpr std::string_view blanks = " \t\r\v\f";

// A fault of one line, without the line and the file.
using fault = std::optional<std::string>;

std::string_view without_blanks(std::string_view line) {
  const auto begin = line.find_first_not_of(blanks);
  return begin == line.npos ? std::string_view()
                            : line.substr(begin, line.find_last_not_of(blanks) - begin + 1);
}

// The next word of a line, which is taken from its front; empty: there is none.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const auto word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

fault read_number(std::string_view field, std::string_view text, std::int64_t low, std::int64_t high,
                  std::int64_t& target) {
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, target);
  if (read.ec == std::errc() && read.ptr == end && target >= low && target <= high) return std::nullopt;
  return fmt::format("{} has to be a number from {} to {}", field, low, high);
}

fault read_name(std::string_view text, key_rights& r) {
  const auto fits = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '.' || c == '-' || c == '@';
  };
  if (text.empty() || text.size() > longest_name || !std::ranges::all_of(text, fits))
    return fmt::format("name has to be 1 to {} of A-Z a-z 0-9 _ . - @", longest_name);
  r.name = text;
  return std::nullopt;
}

fault read_models(std::string_view text, key_rights& r) {
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    const auto model = text.substr(0, comma);
    if (model.empty() || model.size() > longest_model)
      return fmt::format("models has to be names of 1 to {} bytes with commas between them", longest_model);
    if (std::ranges::find(r.models, model) != r.models.end()) return "models has a name twice";
    if (r.models.size() == most_models) return fmt::format("models has over {} names", most_models);
    r.models.emplace_back(model);
    more = comma != text.npos;
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  return std::nullopt;
}

fault read_value(std::string_view field, std::string_view text, key_rights& r) {
  std::int64_t n = 0;
  if (field == "name") return read_name(text, r);
  if (field == "models") return read_models(text, r);
  if (field == "priority") {
    if (auto no = read_number(field, text, -furthest_priority, furthest_priority, n)) return no;
    r.priority = static_cast<int>(n);
  } else if (field == "jobs") {
    if (auto no = read_number(field, text, 1, most_jobs, n)) return no;
    r.jobs = static_cast<std::uint32_t>(n);
  } else {
    if (auto no = read_number(field, text, 1, most_tokens, n)) return no;
    r.tokens_per_min = static_cast<std::uint64_t>(n);
  }
  return std::nullopt;
}

// A word that is no field may be a part of a key, if the key has a blank. So the message shows only a word
// that looks like a field's name.
std::string no_field(std::string_view word, std::size_t number) {
  const auto name = word.substr(0, word.find('='));
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const bool shown = name.size() < word.size() && name.size() <= 24 && std::ranges::all_of(name, fits);
  return fmt::format(
      "{} is no field; after the key come name= priority= jobs= tokens_per_min= models= or admin",
      shown ? fmt::format("'{}'", name) : fmt::format("word {}", number));
}

// The fields of a line, behind its key.
fault read_fields(std::string_view line, key_rights& r) {
  constexpr std::string_view with_value[] = {"name", "priority", "jobs", "tokens_per_min", "models"};
  std::vector<std::string_view> seen;
  std::size_t number = 2;
  for (auto word = take_word(line); !word.empty(); word = take_word(line), ++number) {
    const auto equals = word.find('=');
    const auto field = word.substr(0, equals);
    const bool flag = field == "admin";
    if (!flag && std::ranges::find(with_value, field) == std::end(with_value)) return no_field(word, number);
    if (std::ranges::find(seen, field) != seen.end()) return fmt::format("{} is there twice", field);
    seen.push_back(field);
    if (flag && equals != word.npos) return "admin has no value";
    if (!flag && equals == word.npos) return fmt::format("{} needs a value: {}=…", field, field);
    if (flag) {
      r.admin = true;
    } else if (auto no = read_value(field, word.substr(equals + 1), r)) {
      return no;
    }
  }
  return std::nullopt;
}

core::error file_error(std::string_view file, std::string_view what) {
  return core::bad_param("api-key-file", "--api-key-file {}: {}", file, what);
}

}  // namespace

key_hash hash_of_key(std::string_view key) {
  key_hash h;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), h.data());
  return h;
}

std::uint64_t identity_of(const key_hash& h) {
  std::uint64_t id = 0;
  std::memcpy(&id, h.data(), sizeof id);
  return id == 0 ? 1 : id;
}

bool same_key(const key_hash& a, const key_hash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

api_key::api_key(std::string_view key) : hash(hash_of_key(key)) {}

core::result<std::vector<api_key>> parse_api_keys(std::string_view text, std::string_view file) {
  std::vector<api_key> keys;
  std::map<key_hash, std::size_t> lines;  // where each key stands
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    auto line = without_blanks(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (line.size() > longest_line)
      return file_error(file, fmt::format("line {}: it has over {} bytes", number, longest_line));
    api_key key(take_word(line));
    if (auto no = read_fields(line, key.rights))
      return file_error(file, fmt::format("line {}: {}", number, *no));
    const auto [first, fresh] = lines.emplace(key.hash, number);
    if (!fresh)
      return file_error(file, fmt::format("lines {} and {} are the same key", first->second, number));
    keys.push_back(std::move(key));
    if (keys.size() > most_keys) return file_error(file, fmt::format("it has over {} keys", most_keys));
  }
  if (keys.empty()) return file_error(file, "there is no key in it");
  return keys;
}

}  // namespace weir::net
