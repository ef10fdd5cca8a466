#include "tests/stranger/options.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>
#include <string_view>

namespace weir::stranger {
namespace {

constexpr const char* usage =
    "stranger --weir BIN [--model sim|DIR] [--keys] [--kind K] [--seed S] [--seconds N] [--rounds N]\n"
    "         [--patience-s N] [--address-space B] [--resident B] [--surge B] [--growth B] [--descriptors "
    "N]\n"
    "stranger --attack 127.0.0.1:PORT [--slow N] [--mute N] [--hostile N] [--messages-per-s M]\n"
    "         [--seconds T] [--from 127.A.B.C] [--key K]\n"
    "kinds: http websocket session events greedy crowd flood constraint model response demand\n";

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, into);
  return got.ec == std::errc() && got.ptr == end;
}

bool read_address(const char* text, std::uint32_t& into) {
  in_addr a{};
  if (inet_pton(AF_INET, text, &a) != 1) return false;
  into = ntohl(a.s_addr);
  return into >> 24 == 127;
}

bool take(options& o, std::string_view name, const char* value) {
  const struct {
    std::string_view name;
    std::size_t* into;
  } numbers[] = {{"--seconds", &o.seconds},
                 {"--rounds", &o.rounds},
                 {"--patience-s", &o.patience_s},
                 {"--address-space", &o.address_space},
                 {"--resident", &o.resident},
                 {"--surge", &o.surge},
                 {"--growth", &o.growth},
                 {"--descriptors", &o.descriptors},
                 {"--slow", &o.slow},
                 {"--mute", &o.mute},
                 {"--hostile", &o.hostile},
                 {"--messages-per-s", &o.messages_per_s}};
  for (const auto& n : numbers) {
    if (n.name == name) return read_number(value, *n.into);
  }
  const struct {
    std::string_view name;
    std::string* into;
  } texts[] = {{"--weir", &o.weir},
               {"--model", &o.model},
               {"--kind", &o.kind},
               {"--attack", &o.attack},
               {"--key", &o.key}};
  for (const auto& t : texts) {
    if (t.name == name) return *t.into = value, true;
  }
  if (name == "--seed") return read_number(value, o.seed);
  if (name == "--from") return read_address(value, o.from);
  return false;
}

}  // namespace

std::optional<options> read_options(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--keys") {
      o.keys = true;
    } else if (i + 1 == argc || !take(o, name, argv[++i])) {
      std::fprintf(stderr, "stranger: %s: not known, or its value makes no sense\n%s", argv[i], usage);
      return std::nullopt;
    }
  }
  if (o.weir.empty() == o.attack.empty()) {
    std::fprintf(stderr, "stranger: either --weir or --attack\n%s", usage);
    return std::nullopt;
  }
  return o;
}

std::string replay_line(const options& o, std::uint64_t seed) {
  std::string line = "stranger --weir " + o.weir + " --model " + o.model;
  if (o.keys) line += " --keys";
  if (!o.kind.empty()) line += " --kind " + o.kind;
  const struct {
    const char* name;
    std::size_t value, usual;
  } bounds[] = {
      {"--address-space", o.address_space, 0}, {"--resident", o.resident, 0},
      {"--surge", o.surge, options().surge},   {"--growth", o.growth, options().growth},
      {"--descriptors", o.descriptors, 0},     {"--patience-s", o.patience_s, options().patience_s}};
  for (const auto& b : bounds) {
    if (b.value != b.usual) line += std::string(" ") + b.name + " " + std::to_string(b.value);
  }
  return line + " --seed " + std::to_string(seed) + " --rounds 1";
}

}  // namespace weir::stranger
