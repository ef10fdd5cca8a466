// Finds the JSON Schemas in a body, before it is parsed.
#include <array>
#include <optional>
#include <vector>

#include "net/protocol/constraint_fields.h"

namespace weir::net {
namespace {

constexpr std::size_t deepest = 5;  // keys of the longest path

// Stands in a path for every item of an array. No key is written like this.
constexpr std::string_view each = "\"";

// Where a body has a schema: the keys from the outermost object on.
using path = std::array<std::string_view, deepest>;
constexpr path schema_paths[] = {
    {"json_schema"},
    {"guided_json"},
    {"structured_outputs", "json"},
    {"response_format", "schema"},
    {"text", "format", "schema"},
    {"response_format", "json_schema", "schema"},
    {"output_format", "schema"},
    {"output_config", "format", "schema"},
    {"tools", each, "function", "parameters"},
    {"tools", each, "parameters"},
    {"tools", each, "input_schema"},
    {"tools", each, "tools", each, "parameters"},
};

class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}

  // The body with its schemas as strings; nullopt: it has none, or is no object.
  std::optional<std::string> run() {
    skip_space();
    if (!take('{')) return std::nullopt;
    depth_ = 1;
    while (depth_ > 0 && at_ < text_.size())
      if (!(keys_[depth_ - 1] == each ? item() : member())) return std::nullopt;
    if (kept_ == 0) return std::nullopt;
    out_ += text_.substr(kept_);
    return std::move(out_);
  }
  std::size_t quoted() const { return quoted_; }

 private:
  // Reads one member of the object that is open, or its end. False: the text is no JSON.
  bool member() {
    skip_space();
    if (take(',')) return true;
    if (take('}')) {
      --depth_;
      return true;
    }
    const auto name = string();
    skip_space();
    if (!name || !take(':')) return false;
    skip_space();
    keys_[depth_ - 1] = *name;
    return value();
  }

  // Reads one item of the array that is open, or its end.
  bool item() {
    skip_space();
    if (take(',')) return true;
    if (take(']')) {
      --depth_;
      return true;
    }
    const auto before = at_;
    return value() && at_ > before;
  }

  // Reads the value at the place that keys_ names: a schema, what has schemas inside, or any other.
  bool value() {
    const auto [whole, begins] = look();
    if (whole) return quote();
    if (begins && take('{')) {
      keys_[depth_++] = {};
      return true;
    }
    if (begins && take('[')) {
      keys_[depth_++] = each;
      return true;
    }
    return skip_value();
  }

  struct found {
    bool whole = false, begins = false;  // the keys are a whole path of schema_paths; they begin one
  };
  found look() const {
    found f;
    for (const path& p : schema_paths) {
      bool same = true;
      for (std::size_t i = 0; i < depth_; ++i) same = same && p[i] == keys_[i];
      if (!same) continue;
      if (depth_ == deepest || p[depth_].empty())
        f.whole = true;
      else
        f.begins = true;
    }
    return f;
  }

  // Writes an object or an array as a string that has its text. Any other value stays as it is.
  bool quote() {
    if (at_ == text_.size() || (text_[at_] != '{' && text_[at_] != '[')) return skip_value();
    const auto first = at_;
    if (!skip_value()) return false;
    out_ += text_.substr(kept_, first - kept_);
    append_json_string(out_, text_.substr(first, at_ - first));
    quoted_ += at_ - first;
    kept_ = at_;
    return true;
  }

  bool skip_value() {
    std::size_t open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (!string()) return false;
        --at_;
      } else if (c == '{' || c == '[') {
        ++open;
      } else if (c == '}' || c == ']') {
        if (open == 0) return true;  // of the object around it
        if (--open == 0) {
          ++at_;
          return true;
        }
      } else if (c == ',' && open == 0) {
        return true;
      }
    }
    return open == 0;
  }

  // Reads a string: the text between its quotes, with the escapes as written. nullopt: no string.
  std::optional<std::string_view> string() {
    if (!take('"')) return std::nullopt;
    const auto first = at_;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') return text_.substr(first, at_++ - first);
      if (text_[at_] == '\\') ++at_;
    }
    return std::nullopt;
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    constexpr std::string_view space = " \t\r\n";
    while (at_ < text_.size() && space.find(text_[at_]) != space.npos) ++at_;
  }

  const std::string_view text_;
  std::size_t at_ = 0, kept_ = 0;  // kept_: bytes of the text that are in out_
  std::size_t quoted_ = 0;         // bytes of schemas
  std::size_t depth_ = 0;          // of open objects and arrays; at most `deepest`
  path keys_{};
  std::string out_;
};

}  // namespace

std::string with_schemas_as_text(std::string_view text) {
  auto changed = scanner(text).run();
  return changed ? std::move(*changed) : std::string(text);
}

std::size_t bytes_of_schemas(std::string_view text) {
  scanner all(text);
  return all.run() ? all.quoted() : 0;
}

}  // namespace weir::net
