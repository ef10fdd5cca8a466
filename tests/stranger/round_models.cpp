#include "tests/stranger/bytes.h"
#include "tests/stranger/json_text.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

constexpr const char* models = "/v1/admin/models";

std::string guest(random_source& draw) { return "guest-" + std::to_string(draw.between(1, 3)); }

std::vector<field> load_fields(random_source& draw, const target& t) {
  static const std::string elsewhere[] = {"no-such-model", "../..", "/etc/passwd", "random:none",
                                          "sim:rate=x"};
  const bool right = !t.guest_source.empty() && draw.chance(80);
  std::vector<field> fields = {{"name", quoted(guest(draw))},
                               {"source", quoted(right ? t.guest_source : draw.pick(elsewhere))}};
  if (draw.chance(50)) fields.push_back({"wait", draw.chance(50) ? "true" : "false"});
  if (draw.chance(10)) fields.push_back({"device", quoted("cuda:9")});
  if (draw.chance(10)) fields.push_back({"split", "[1,2]"});
  return fields;
}

std::vector<field> change_fields(random_source& draw) {
  static const std::string actions[] = {"load", "unload", "sleep", "wake"};
  const auto& action = draw.pick(actions);
  std::vector<field> fields = {{"action", quoted(action)}};
  if (draw.chance(action == "sleep" ? 70 : 5))
    fields.push_back({"level", draw.chance(60) ? "\"host\"" : draw.chance(80) ? "\"disk\"" : "\"deep\""});
  if (draw.chance(50)) fields.push_back({"drain_s", draw.chance(50) ? "0" : "0.2"});
  if (draw.chance(50)) fields.push_back({"wait", "false"});
  return fields;
}

struct shaped {
  std::string path;
  std::vector<field> fields;
};

shaped any_order(random_source& draw, const target& t) {
  const std::size_t kind = draw.below(100);
  if (kind < 35) return {models, load_fields(draw, t)};
  if (kind < 60) return {std::string(models) + "/" + guest(draw), change_fields(draw)};
  if (kind < 75)
    return {
        "/v1/admin/swap",
        {{"out", "[" + quoted(guest(draw)) + "]"}, {"in", object(load_fields(draw, t))}, {"drain_s", "0.2"}}};
  if (kind < 80) return {"/v1/admin/plan", load_fields(draw, t)};
  return {draw.chance(50) ? "/models/load" : "/models/unload", {{"model", quoted(guest(draw))}}};
}

// With the key of an admin where the server has keys, mostly.
target admins(random_source& draw, const target& t) {
  target out = t;
  if (!t.keys.empty() && draw.chance(85)) out.keys = {t.admin_key};
  return out;
}

conversation order(random_source& draw, const target& t) {
  const target by = admins(draw, t);
  conversation c;
  if (draw.chance(12)) {
    request r = get(draw, by, std::string(models) + "/" + guest(draw));
    r.method = "DELETE";
    c.what = "a model is forgotten";
    c.script = {{r.text()}};
  } else {
    const shaped s = any_order(draw, t);
    const bool wrong = draw.chance(40);
    request r = post(draw, by, {s.path, wrong ? spoiled_object(draw, s.fields) : object(s.fields)});
    if (draw.chance(8)) r.lines.push_back("X-Forwarded-For: 127.0.0.1");
    if (draw.chance(8)) r.lines.push_back("Origin: https://evil.example");
    if (draw.chance(10)) r = spoiled(draw, by, std::move(r));
    c.what = (wrong ? "a wrong order for " : "an order for ") + s.path;
    c.script = {{r.text()}};
  }
  c.linger_ms = static_cast<int>(draw.between(0, 400));
  c.end = draw.chance(30) ? ending::reset : draw.chance(20) ? ending::half_close : ending::close;
  return c;
}

conversation follower(random_source& draw, const target& t) {
  conversation c;
  c.what = "a follower of the models";
  c.script = {{get(draw, t, "/models/sse").text()}};
  c.reads = draw.chance(40) ? appetite::nothing : draw.chance(50) ? appetite::sips : appetite::everything;
  c.linger_ms = static_cast<int>(draw.between(0, 800));
  c.end = draw.chance(30) ? ending::reset : ending::close;
  return c;
}

conversation guests_job(random_source& draw, const target& t) {
  std::vector<field> fields = {{"model", quoted(guest(draw))},
                               {"prompt", "\"x\""},
                               {"max_tokens", std::to_string(draw.chance(50) ? endless_tokens : 3)},
                               {"stream", "true"}};
  if (draw.chance(40)) fields.push_back({"load", draw.chance(50) ? "\"wait\"" : "\"refuse\""});
  if (draw.chance(20)) fields.push_back({"keep_alive", draw.chance(50) ? "\"1s\"" : "-1"});
  conversation c;
  c.what = "a job of a model that comes, goes, sleeps and wakes";
  c.script = {{post(draw, t, {"/v1/completions", object(fields)}).text()}};
  c.linger_ms = static_cast<int>(draw.between(0, 600));
  return c;
}

}  // namespace

std::vector<conversation> model_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(15, 40); n > 0; --n) {
    const std::size_t kind = draw.below(100);
    all.push_back(kind < 70 ? order(draw, t) : kind < 85 ? follower(draw, t) : guests_job(draw, t));
  }
  return all;
}

}  // namespace weir::stranger
