// `weir chat`: a conversation in a terminal.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>

#include "apps/chat/peer.h"
#include "apps/chat/terminal.h"
#include "apps/commands.h"
#include "apps/local_service.h"
#include "apps/options.h"
#include "apps/sampling_options.h"
#include "core/text/chat/dialogue.h"
#include "core/text/chat/message_lines.h"
#include "core/visible.h"

namespace weir::apps {
namespace {

struct chat_options {
  core::engine_settings engine;
  chat_manner manner;
  std::string url, key;
  std::optional<std::string> system;
  bool amnesia = false;
};

constexpr const char* help =
    "/reset        forget the conversation\n"
    "/stats        turns, tokens and speed\n"
    "/save FILE    keep the conversation as JSON\n"
    "/load FILE    go on with a conversation that was kept\n"
    "/quit         end\n"
    "A line that ends with \\ goes on in the next one. Lines between two lines of \"\"\" are one message.\n"
    "Ctrl-C stops an answer.";

class conversation {
 public:
  conversation(peer& with, const chat_options& o) : with_(with), o_(o), said_(o.system) {}

  int run() {
    show_.notice(with_.name() + ". /help lists the commands.");
    for (;;) {
      const auto got = show_.read(lines_.open() ? ". " : "> ");
      if (got.is == terminal::input::kind::end) return exit_code::done;
      if (got.is == terminal::input::kind::interrupted) {
        lines_.drop();
        show_.notice("/quit ends the conversation");
        continue;
      }
      const auto message = lines_.take(got.line);
      if (!message || message->find_first_not_of(" \t\n") == std::string::npos) continue;
      if (const auto command = core::command_in(*message)) {
        if (command->name == "quit") return exit_code::done;
        obey(*command);
      } else {
        turn(*message);
      }
    }
  }

 private:
  void obey(const core::slash_command& c) {
    if (c.name == "reset") {
      said_.forget();
      show_.notice("the conversation is forgotten");
    } else if (c.name == "stats") {
      show_stats();
    } else if (c.name == "save") {
      save(c.argument);
    } else if (c.name == "load") {
      load(c.argument);
    } else if (c.name == "help") {
      show_.notice(help);
    } else {
      show_.error("/" + c.name + " is no command; /help lists them");
    }
  }

  void save(const std::string& file) {
    if (file.empty()) return show_.error("/save needs the name of a file");
    std::ofstream out(file);
    out << said_.saved() << std::flush;
    if (!out) return show_.error("/save " + file + ": cannot be written");
    show_.notice("kept in " + file);
  }

  void load(const std::string& file) {
    if (file.empty()) return show_.error("/load needs the name of a file");
    std::ifstream in(file);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (!in) return show_.error("/load " + file + ": cannot be read");
    if (const auto read = said_.load(text); !read)
      return show_.error("/load " + file + ": " + read.error().message);
    show_.notice(fmt::format("the conversation has {} questions", said_.turns()));
  }

  void turn(const std::string& message) {
    if (o_.amnesia) said_.forget();
    said_.ask(message);
    std::string text, thoughts;
    std::size_t dropped = 0;
    const answer_end end = ask(dropped, [&](std::string_view piece, bool thought) {
      show_.answer(piece, thought);
      (thought ? thoughts : text) += piece;
    });
    show_.end_answer();
    if (dropped > 0)
      show_.notice(fmt::format("(the context is full: the {} oldest {} forgotten)", dropped,
                               dropped == 1 ? "turn is" : "turns are"));
    if (end.stopped) show_.notice("(stopped)");
    if (end.cut) show_.notice("(cut: the answer is as long as --max-tokens or the context allows)");
    if (!end.error.empty()) show_.error(end.error);
    if (text.empty() && (end.stopped || !end.error.empty())) return said_.take_back();
    said_.answer(text, thoughts);
    count(end);
  }

  // Asks, and drops the oldest turns as long as the messages do not fit. `dropped`: how many.
  answer_end ask(std::size_t& dropped, const peer::on_text& show) {
    answer_end end = with_.ask(said_.messages(), show);
    while (end.too_long && said_.drop_oldest()) {
      ++dropped;
      end = with_.ask(said_.messages(), show);
    }
    return end;
  }

  void count(const answer_end& end) {
    ++answers_;
    input_ += end.input_tokens;
    output_ += end.output_tokens;
    cached_ += end.cached_tokens;
    last_ = end;
  }

  void show_stats() {
    const double ms = last_.whole_ms - last_.first_ms;
    const double speed =
        ms > 0 && last_.output_tokens > 1 ? 1000.0 * static_cast<double>(last_.output_tokens - 1) / ms : 0;
    show_.notice(
        fmt::format("{} answers: {} tokens read, {} of them cached, {} written\n"
                    "the last one: {} read, {} of them cached, {} written; first text after {:.0f} ms, then "
                    "{:.0f} tokens/s",
                    answers_, input_, cached_, output_, last_.input_tokens, last_.cached_tokens,
                    last_.output_tokens, last_.first_ms, speed));
  }

  peer& with_;
  const chat_options& o_;
  core::dialogue said_;
  terminal show_;
  core::message_lines lines_;
  std::size_t answers_ = 0;
  std::uint64_t input_ = 0, output_ = 0, cached_ = 0;
  answer_end last_;
};

std::unique_ptr<peer> open_peer(const chat_options& o, int& exit) {
  if (o.url.empty()) return open_local_peer(o.engine, o.manner, exit);
  const std::string model = o.engine.model.empty() ? "" : o.engine.model.front();
  auto made = open_remote_peer(o.url, o.key, model, o.manner);
  if (made) return std::move(*made);
  std::cerr << core::visible(made.error().message) << '\n';
  exit = exit_of(made.error());
  return nullptr;
}

int run(const chat_options& o) {
  int exit = exit_code::done;
  const auto with = open_peer(o, exit);
  return with ? conversation(*with, o).run() : exit;
}

}  // namespace

command add_chat(CLI::App& app) {
  auto o = std::make_shared<chat_options>();
  app.add_option("--url", o->url,
                 "a server instead of a model here: weir's, or one that speaks OpenAI's protocol");
  app.add_option("--api-key", o->key, "the server's key");
  app.add_option("--system", o->system, "a system message");
  app.add_flag("--amnesia", o->amnesia, "forget after each turn");
  app.add_option("--max-tokens", o->manner.max_tokens, "longest answer")->type_name("tokens");
  add_sampling(app, o->manner.sampling);
  name_variables(app);
  add_settings(app, o->engine);
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
