// `weir launch`: starts a client of a server, told by its environment and its arguments where the server is.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "apps/commands.h"
#include "apps/http_talk.h"
#include "apps/launch_clients.h"
#include "apps/options.h"
#include "core/visible.h"

namespace weir::apps {
namespace {

namespace json = boost::json;

struct launch_options {
  std::string client, url = "http://127.0.0.1:8080", key, model;
  std::vector<std::string> arguments;
  bool print = false;
};

// A model as /v1/models lists it.
struct listed_model {
  std::string name;
  bool ready = true;  // servers that say nothing of it list what they serve
  bool alias = false;
  std::uint64_t context = 0;
};

std::uint64_t count_at(const json::object& o, const char* name) {
  const json::value* v = o.if_contains(name);
  const bool counts = v && v->is_number() && v->to_number<double>() >= 1 && v->to_number<double>() < 1e12;
  return counts ? static_cast<std::uint64_t>(v->to_number<double>()) : 0;
}

const json::object* object_at(const json::object& o, const char* name) {
  const json::value* v = o.if_contains(name);
  return v ? v->if_object() : nullptr;
}

const json::string* string_at(const json::object& o, const char* name) {
  const json::value* v = o.if_contains(name);
  return v ? v->if_string() : nullptr;
}

std::optional<listed_model> listed(const json::value& v) {
  const json::object* o = v.if_object();
  const json::string* id = o ? string_at(*o, "id") : nullptr;
  if (!id || id->empty() || id->find('\0') != json::string::npos) return std::nullopt;
  listed_model m;
  m.name = std::string(*id);
  m.context = count_at(*o, "context_length");
  if (m.context == 0) m.context = count_at(*o, "max_model_len");
  if (const json::object* meta = object_at(*o, "meta")) {
    m.alias = meta->contains("alias_of");
    if (m.context == 0) m.context = count_at(*meta, "n_ctx");
  }
  if (const json::object* status = object_at(*o, "status"))
    if (const json::string* value = string_at(*status, "value")) m.ready = *value == "loaded";
  return m;
}

core::result<std::vector<listed_model>> models_of(const launch_options& o) {
  auto server = http_talk::to(o.url, o.key);
  if (!server) return server.error();
  const auto said = server->ask("/v1/models");
  const auto wrong = [&](std::string_view why) {
    return core::make_error(core::errc::unavailable, "{}: {}", server->authority(), why);
  };
  if (said.status == 0) return wrong(said.body);
  if (said.status == 401 || said.status == 403) return wrong("the key is not taken: give another --api-key");
  boost::system::error_code ec;
  const json::value v = json::parse(said.body, ec);
  const json::object* all = ec ? nullptr : v.if_object();
  const json::value* data = all ? all->if_contains("data") : nullptr;
  if (said.status != 200 || !data || !data->is_array())
    return wrong(fmt::format("/v1/models gives no list of models (status {})", said.status));
  std::vector<listed_model> out;
  for (const json::value& one : data->get_array())
    if (auto m = listed(one)) out.push_back(std::move(*m));
  return out;
}

// The model that was asked for; else the first one that is ready.
core::result<listed_model> choose_model(const std::vector<listed_model>& all, const std::string& asked) {
  std::vector<std::string> names;
  for (const auto& m : all) names.push_back(m.ready ? m.name : m.name + " (not loaded)");
  const std::string there = names.empty() ? "no model" : fmt::format("{}", fmt::join(names, ", "));
  const auto fits = [&](const listed_model& m) {
    return asked.empty() ? m.ready && !m.alias : m.name == asked;
  };
  const auto at = std::ranges::find_if(all, fits);
  if (at == all.end())
    return asked.empty()
               ? core::bad_param("model", "no model is ready; there is {}", there)
               : core::bad_param("model", "--model: no model is called '{}'; there is {}", asked, there);
  if (!at->ready)
    return core::bad_param("model", "--model {}: the model is not loaded; `weir models load` loads it",
                           asked);
  if (at->context == 0)
    return core::bad_param("model", "the server does not say how long the context of {} is", at->name);
  return *at;
}

// `url` without the /v1 that many write behind it.
std::string root_of(std::string url) {
  const auto cut_slashes = [&] { url.resize(url.find_last_not_of('/') + 1); };
  cut_slashes();
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  cut_slashes();
  return url.find("://") == url.npos ? "http://" + url : url;
}

std::vector<std::string> command_of(const launch_client& c, const launch_facts& f,
                                    const std::vector<std::string>& given) {
  std::vector<std::string> out{std::string(c.program)};
  for (const auto a : c.arguments) out.push_back(fill(a, f));
  out.insert(out.end(), given.begin(), given.end());
  if (given.empty()) out.insert(out.end(), c.usual.begin(), c.usual.end());
  return out;
}

int print(const launch_client& c, const launch_facts& f, const std::vector<std::string>& command) {
  for (const auto name : c.removed) std::cout << "unset " << name << '\n';
  for (const auto& [name, value] : c.variables)
    std::cout << "export " << name << '=' << shell_word(fill(value, f)) << '\n';
  if (c.program.empty()) return exit_code::done;
  for (std::size_t i = 0; i < command.size(); ++i) std::cout << (i ? " " : "") << shell_word(command[i]);
  std::cout << '\n';
  return exit_code::done;
}

// Becomes the client. Returns where that fails.
int start(const launch_client& c, const launch_facts& f, std::vector<std::string> command) {
  for (const auto name : c.removed) ::unsetenv(std::string(name).c_str());
  for (const auto& [name, value] : c.variables)
    ::setenv(std::string(name).c_str(), fill(value, f).c_str(), 1);
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  if (errno == ENOENT) return fail(fmt::format("{} is not installed: {}", c.program, c.install));
  std::cerr << c.program << " cannot be started: " << std::strerror(errno) << '\n';
  return exit_code::bad_usage;
}

int run(const launch_options& o) {
  const auto all = launch_clients();
  const auto client = std::ranges::find(all, o.client, &launch_client::name);
  if (client == all.end()) {
    std::vector<std::string_view> names;
    for (const auto& c : all) names.push_back(c.name);
    return fail(fmt::format("no client is called '{}'; there is {}", core::visible(o.client),
                            fmt::join(names, ", ")));
  }
  if (client->program.empty() && !o.arguments.empty())
    return fail(fmt::format("{} starts no program, so it takes no arguments", o.client));
  const auto models = models_of(o);
  if (!models) {
    std::cerr << core::visible(models.error().message) << '\n';
    return models.error().code == core::errc::invalid_param ? exit_code::bad_usage
                                                            : exit_code::internal_error;
  }
  const auto model = choose_model(*models, o.model);
  if (!model) return fail(core::visible(model.error().message));
  const launch_facts facts{root_of(o.url), o.key.empty() ? "none" : o.key, model->name, model->context};
  auto command = command_of(*client, facts, o.arguments);
  if (o.print || client->program.empty()) return print(*client, facts, command);
  return start(*client, facts, std::move(command));
}

}  // namespace

command add_launch(CLI::App& app) {
  auto o = std::make_shared<launch_options>();
  app.add_option("client", o->client, "claude, codex, opencode, aider, goose, qwen, or env, which prints")
      ->required();
  app.add_option("args", o->arguments, "arguments of the client, behind --");
  app.add_option("--url", o->url, "the server")->capture_default_str();
  app.add_option("--api-key", o->key, "key for the server");
  app.add_option("--model", o->model, "a model or an alias of the server; none: the first that is ready");
  app.add_flag("--print", o->print, "print the lines of a shell that would start the client");
  name_variables(app);
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
