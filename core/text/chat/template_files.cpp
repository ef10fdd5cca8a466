#include "core/text/chat/template_files.h"

#include <algorithm>
#include <filesystem>

#include "core/model/load/gguf_header.h"
#include "core/text/json_field.h"
#include "core/text/read_file.h"
#include "core/text/tokenizer/gguf_tokenizer.h"

namespace weir::core {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

std::optional<std::string> contents(const std::string& path) {
  auto text = read_file(path);
  if (!text) throw refusal{text.error()};
  return std::move(*text);
}

// Nothing if there is no such file.
json::value document(const std::string& path) {
  const auto text = contents(path);
  return text ? parse_json(*text, path, {}) : json::value();
}

// The field `chat_template`: a string, or a list of {name, template}.
std::vector<template_files::source> sources_in(const json_field& file) {
  const auto field = file.find("chat_template");
  if (!field) return {};
  if (!field->is_array()) return {{"default", std::string(field->text())}};
  std::vector<template_files::source> out;
  for (const json_field& item : field->items())
    out.push_back({std::string(item.at("name").text()), std::string(item.at("template").text())});
  return out;
}

// Templates of additional_chat_templates, in the order of their names.
void add_named(const std::string& dir, std::vector<template_files::source>& to) {
  std::error_code ec;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(dir + "/additional_chat_templates", ec))
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files)
    if (auto text = contents(file.string())) to.push_back({file.stem().string(), std::move(*text)});
}

// Members like bos_token, each a string or {"content": …}, that `to` does not have yet.
void add_tokens(const json::value& file, const std::string& path, json::object& to) {
  if (!file.is_object()) return;
  for (const auto& [key, value] : file.get_object()) {
    if (!std::string_view(key).ends_with("_token") || value.is_null() || to.contains(key)) continue;
    const json_field field(value, path + "." + std::string(key));
    if (field.is_object())
      to[key] = field.at("content").text();
    else if (field.is_text())  // add_bos_token and its like are booleans
      to[key] = field.text();
  }
}

template_files templates_of_gguf(const std::string& path) {
  const auto header = open_gguf_header(path);
  if (!header) throw refusal{header.error()};
  gguf_reader keys(header->content.keys, path);
  template_files found;
  found.tokens = gguf_special_tokens(keys);
  for (auto& [name, text] : gguf_chat_templates(keys)) found.sources.push_back({name, std::move(text)});
  found.origin = "tokenizer.chat_template";
  if (keys.failure()) throw refusal{*keys.failure()};
  return found;
}

}  // namespace

template_files find_template_files(const std::string& dir) {
  if (is_gguf_path(dir)) return templates_of_gguf(dir);
  template_files found;
  const std::string config_path = dir + "/tokenizer_config.json", map_path = dir + "/special_tokens_map.json";
  const json::value config = document(config_path);
  add_tokens(config, config_path, found.tokens);
  add_tokens(document(map_path), map_path, found.tokens);

  if (auto own = contents(dir + "/chat_template.jinja")) {
    found.origin = "chat_template.jinja";
    found.sources.push_back({"default", std::move(*own)});
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    const std::string path = dir + "/" + name;
    const json::value file = document(path);
    if (!found.sources.empty() || file.is_null()) continue;
    found.sources = sources_in(json_field(file, path));
    found.origin = name;
  }
  add_named(dir, found.sources);
  return found;
}

}  // namespace weir::core
