#include "core/grammar/schema/json_tree.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <map>
#include <unordered_set>

#include "core/grammar/id_table.h"
#include "core/grammar/schema/decimal.h"

namespace weir::core::grammar {
namespace json = boost::json;

const char* name(json_kind k) noexcept {
  constexpr const char* names[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
  return names[static_cast<int>(k)];
}

// A handler of Boost.JSON's parser, which calls a member for each piece of the text. A member that returns
// false ends the parsing, with the reason in `why`.
class json_tree_reader {
 public:
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;

  json_tree_reader(std::size_t most_values, fuel* budget) : left_(most_values) { tree_.budget_ = budget; }

  json_tree take() { return std::move(tree_); }
  std::optional<error> why;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code& ec) { return open(json_kind::object, ec); }
  bool on_object_end(std::size_t, json::error_code& ec) {
    const json_node& object = tree_.nodes_[open_.back()];
    std::unordered_set<std::string_view> seen;
    for (const std::string& n : object.names)
      if (!seen.insert(n).second)
        return refuse(make_error(errc::invalid_param, "the member \"{}\" occurs twice in {}", n, place()),
                      ec);
    return open_.pop_back(), true;
  }
  bool on_array_begin(json::error_code& ec) { return open(json_kind::array, ec); }
  bool on_array_end(std::size_t, json::error_code&) { return open_.pop_back(), true; }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    return text_.append(part.data(), part.size()), true;
  }
  bool on_key(json::string_view end, std::size_t, json::error_code&) {
    text_.append(end.data(), end.size());
    tree_.nodes_[open_.back()].names.push_back(std::move(text_));
    return text_.clear(), true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    return text_.append(part.data(), part.size()), true;
  }
  bool on_string(json::string_view end, std::size_t, json::error_code& ec) {
    return scalar(json_kind::string, end, ec);
  }
  bool on_number_part(json::string_view part, json::error_code&) {
    return text_.append(part.data(), part.size()), true;
  }
  bool on_int64(std::int64_t, json::string_view end, json::error_code& ec) { return number(end, ec); }
  bool on_uint64(std::uint64_t, json::string_view end, json::error_code& ec) { return number(end, ec); }
  bool on_double(double, json::string_view end, json::error_code& ec) { return number(end, ec); }
  bool on_bool(bool b, json::error_code& ec) {
    if (!scalar(json_kind::boolean, {}, ec)) return false;
    tree_.nodes_.back().truth = b;
    return true;
  }
  bool on_null(json::error_code& ec) { return scalar(json_kind::null, {}, ec); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool refuse(error e, json::error_code& ec) {
    why = std::move(e);
    ec = json::error::incomplete;
    return false;
  }
  std::string place() const {
    const std::string p = tree_.pointer(open_.back());
    return p.empty() ? "the outermost object" : p;
  }
  bool add(json_kind kind, json::error_code& ec) {
    if (left_ == 0) return refuse(make_error(errc::invalid_param, "the JSON has too many values"), ec);
    --left_;
    tree_.burn();
    const auto id = static_cast<json_node_id>(tree_.nodes_.size());
    json_node& n = tree_.nodes_.emplace_back();
    n.kind = kind;
    if (open_.empty()) return true;
    n.parent = open_.back();
    json_node& parent = tree_.nodes_[open_.back()];
    n.place = static_cast<std::uint32_t>(parent.items.size());
    parent.items.push_back(id);
    return true;
  }
  bool open(json_kind kind, json::error_code& ec) {
    const auto id = static_cast<json_node_id>(tree_.nodes_.size());
    if (!add(kind, ec)) return false;
    return open_.push_back(id), true;
  }
  bool scalar(json_kind kind, json::string_view end, json::error_code& ec) {
    text_.append(end.data(), end.size());
    if (!add(kind, ec)) return false;
    tree_.nodes_.back().text = std::move(text_);
    return text_.clear(), true;
  }
  bool number(json::string_view end, json::error_code& ec) {
    if (!scalar(json_kind::number, end, ec)) return false;
    if (decimal::parse(tree_.nodes_.back().text)) return true;
    return refuse(make_error(errc::invalid_param, "the exponent of the number {} is too large",
                             tree_.nodes_.back().text.substr(0, 40)),
                  ec);
  }

  json_tree tree_;
  std::vector<json_node_id> open_;  // arrays and objects around the next value
  std::string text_;
  std::size_t left_;
};

std::optional<json_node_id> json_tree::member(json_node_id id, std::string_view name) const {
  const json_node& n = nodes_[id];
  burn(n.names.size() / 16);
  for (std::size_t i = 0; i < n.names.size(); ++i)
    if (n.names[i] == name) return n.items[i];
  return std::nullopt;
}

std::string json_tree::pointer(json_node_id id) const {
  std::vector<json_node_id> path;
  for (; id != root; id = nodes_[id].parent) path.push_back(id);
  std::string out;
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    const json_node& n = nodes_[*at];
    const json_node& parent = nodes_[n.parent];
    out += '/';
    if (parent.kind == json_kind::array) {
      out += std::to_string(n.place);
      continue;
    }
    for (char c : parent.names[n.place]) {
      if (c == '~')
        out += "~0";
      else if (c == '/')
        out += "~1";
      else
        out += c;
    }
  }
  return out;
}

namespace {

std::string unescaped(std::string_view token) {
  std::string out;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1'))
      out += token[++i] == '0' ? '~' : '/';
    else
      out += token[i];
  }
  return out;
}

}  // namespace

std::optional<json_node_id> json_tree::at_pointer(json_node_id from, std::string_view pointer) const {
  json_node_id at = from;
  while (!pointer.empty()) {
    if (pointer.front() != '/') return std::nullopt;
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string token = unescaped(pointer.substr(0, end));
    pointer.remove_prefix(end);
    const json_node& n = nodes_[at];
    if (n.kind == json_kind::array) {
      std::size_t index = 0;
      const auto [last, ec] = std::from_chars(token.data(), token.data() + token.size(), index);
      if (ec != std::errc() || last != token.data() + token.size() || index >= n.items.size())
        return std::nullopt;
      at = n.items[index];
    } else {
      const auto next = member(at, token);
      if (!next) return std::nullopt;
      at = *next;
    }
  }
  return at;
}

bool json_tree::equal(json_node_id first, json_node_id second) const {
  std::vector<std::pair<json_node_id, json_node_id>> left{{first, second}};
  while (!left.empty()) {
    const auto [a, b] = left.back();
    left.pop_back();
    burn();
    const json_node &x = nodes_[a], &y = nodes_[b];
    if (x.kind != y.kind || x.items.size() != y.items.size()) return false;
    switch (x.kind) {
      case json_kind::null:
        break;
      case json_kind::boolean:
        if (x.truth != y.truth) return false;
        break;
      case json_kind::number:
        if (decimal::of(x.text) != decimal::of(y.text)) return false;
        break;
      case json_kind::string:
        if (x.text != y.text) return false;
        break;
      case json_kind::array:
        for (std::size_t i = 0; i < x.items.size(); ++i) left.emplace_back(x.items[i], y.items[i]);
        break;
      case json_kind::object: {
        std::map<std::string_view, json_node_id> named;
        for (std::size_t i = 0; i < y.items.size(); ++i) named.emplace(y.names[i], y.items[i]);
        for (std::size_t i = 0; i < x.items.size(); ++i) {
          const auto at = named.find(x.names[i]);
          if (at == named.end()) return false;
          left.emplace_back(x.items[i], at->second);
        }
        break;
      }
    }
  }
  return true;
}

// Recurses as deep as the text is nested, which json_tree_bounds::depth bounds.
std::uint64_t json_tree::hash(json_node_id id) const {
  burn();
  const json_node& n = nodes_[id];
  const std::hash<std::string_view> of_text;
  auto h = mixed(static_cast<std::uint64_t>(n.kind) + 1, n.truth ? 1 : 0);
  if (n.kind == json_kind::string) h = mixed(h, of_text(n.text));
  if (n.kind == json_kind::number) {
    const decimal d = decimal::of(n.text);
    h = mixed(mixed(h, of_text(d.digits)), static_cast<std::uint64_t>(d.exponent) * 2 + (d.negative ? 1 : 0));
  }
  std::uint64_t members = 0;  // in any order
  for (std::size_t i = 0; i < n.items.size(); ++i) {
    if (n.kind == json_kind::array)
      h = mixed(h, hash(n.items[i]));
    else
      members += mixed(of_text(n.names[i]), hash(n.items[i]));
  }
  return mixed(h, members);
}

result<json_tree> read_json_tree(std::string_view text, const json_tree_bounds& most, fuel* budget) {
  if (text.size() > most.bytes)
    return make_error(errc::invalid_param, "the JSON has {} bytes; at most {} are read", text.size(),
                      most.bytes);
  json::parse_options options;
  options.max_depth = most.depth;
  json::basic_parser<json_tree_reader> parser(options, most.values, budget);
  json::error_code ec;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), ec);
  if (parser.handler().why) return *parser.handler().why;
  if (ec == json::error::too_deep)
    return make_error(errc::invalid_param, "the JSON is nested deeper than {}", most.depth);
  if (ec) return make_error(errc::invalid_param, "no valid JSON at byte {}: {}", read, ec.message());
  if (read < text.size())
    return make_error(errc::invalid_param, "the JSON goes on behind its end, at byte {}", read);
  return parser.handler().take();
}

}  // namespace weir::core::grammar
