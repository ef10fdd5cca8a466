// A round about models that are not ready: one administrator brings models, pins them, lets them sleep and
// unloads them, and everybody else asks for them, waits, leaves, and asks for what is not theirs.
#include "tests/stranger/frames.h"
#include "tests/stranger/json_text.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

constexpr const char* models = "/v1/admin/models";
constexpr std::size_t names = 9;  // one more than a device has room for, beside the model of the start
constexpr int longest_order_ms = 1500;

std::string lodger(std::size_t i) { return "lodger-" + std::to_string(i); }

std::string any_lodger(random_source& draw) { return lodger(draw.between(1, names)); }

using orders = std::vector<piece>;

void add(orders& to, random_source& draw, const target& admin, std::string path, std::vector<field> fields) {
  const bool first = to.empty();
  to.push_back({post(draw, admin, {std::move(path), object(fields)}).text(), 0, !first});
}

void change(orders& to, random_source& draw, const target& admin, const std::string& name,
            std::vector<field> fields) {
  add(to, draw, admin, std::string(models) + "/" + name, std::move(fields));
}

std::vector<field> sleep_fields(random_source& draw) {
  return {{"action", "\"sleep\""},
          {"level", draw.chance(60) ? "\"host\"" : "\"disk\""},
          {"drain_s", draw.chance(70) ? "0.3" : "0"}};
}

// Every place of the device is taken by a model that stays, so that what is asked for afterwards does not
// fit.
void fill_house(orders& to, random_source& draw, const target& admin) {
  add(to, draw, admin, models, {{"name", quoted(lodger(names))}, {"source", quoted(admin.guest_source)}});
  change(to, draw, admin, lodger(names), {{"action", "\"unload\""}});
  change(to, draw, admin, admin.model, {{"pinned", "true"}});
  for (std::size_t i = 1; i < names; ++i) {
    add(to, draw, admin, models, {{"name", quoted(lodger(i))}, {"source", quoted(admin.guest_source)}});
    change(to, draw, admin, lodger(i), {{"pinned", "true"}});
  }
}

// Models come slowly, sleep and go, and each is asked for meanwhile.
void keep_changing(orders& to, random_source& draw, const target& admin) {
  const std::size_t some = draw.between(1, 3);
  if (!admin.slow_source.empty())
    for (std::size_t i = 1; i <= some; ++i)
      add(to, draw, admin, models, {{"name", quoted(lodger(i))}, {"source", quoted(admin.slow_source)}});
  for (std::size_t n = draw.between(2, 6); n > 0; --n) {
    const std::string name = draw.chance(30) ? admin.model : lodger(draw.between(1, some));
    if (draw.chance(50))
      change(to, draw, admin, name, sleep_fields(draw));
    else if (draw.chance(50))
      change(to, draw, admin, name, {{"action", "\"wake\""}});
    else if (name != admin.model)
      change(to, draw, admin, name, {{"action", "\"unload\""}, {"drain_s", "0.1"}});
    else
      change(to, draw, admin, name, {{"pinned", draw.chance(50) ? "true" : "false"}});
  }
}

// The only client that gives orders, one after the other, so that none is refused as busy.
conversation landlord(random_source& draw, const target& t, bool full) {
  target admin = t;
  if (!t.keys.empty()) admin.keys = {t.admin_key};
  conversation c;
  c.what = full ? "an administrator who fills the device" : "an administrator whose models come and sleep";
  if (full)
    fill_house(c.script, draw, admin);
  else
    keep_changing(c.script, draw, admin);
  c.linger_ms = longest_order_ms;
  return c;
}

std::string wish(random_source& draw, const std::string& model) {
  std::vector<field> fields = {{"model", quoted(model)},
                               {"prompt", "\"x\""},
                               {"max_tokens", std::to_string(draw.chance(30) ? endless_tokens : 3)}};
  if (draw.chance(70)) fields.push_back({"stream", "true"});
  if (draw.chance(15)) fields.push_back({"load", "\"refuse\""});
  if (draw.chance(15)) fields.push_back({"keep_alive", draw.chance(50) ? "\"24h\"" : "0"});
  if (draw.chance(20)) fields.push_back({"deadline_ms", std::to_string(draw.between(1, 500))});
  return object(fields);
}

// A client that asks for a model, and leaves before or after it has come.
conversation waiter(random_source& draw, const target& t) {
  const std::string model = draw.chance(20) ? t.model : any_lodger(draw);
  conversation c;
  c.what = "a client that waits for a model, and leaves";
  const int begins = static_cast<int>(draw.between(100, 1800));
  if (draw.chance(65)) {
    c.script = {{post(draw, t, {"/v1/completions", wish(draw, model)}).text(), begins}};
  } else {
    const std::string create = object({{"type", "\"response.create\""},
                                       {"id", "\"a\""},
                                       {"model", quoted(model)},
                                       {"input", "\"x\""},
                                       {"max_tokens", draw.chance(50) ? "3" : "100000"}});
    c.script = {{upgrade(draw, t).text(), begins}, {frame(op_text, create), 0, true}};
    if (draw.chance(40)) c.script.push_back({frame(op_text, cancel_message("a")), 100});
  }
  c.linger_ms = static_cast<int>(draw.between(1, 900));
  c.end = draw.chance(50) ? ending::reset : draw.chance(30) ? ending::half_close : ending::close;
  if (draw.chance(15)) c.reads = appetite::nothing;
  return c;
}

// The holder of a key asks for a model that the key's line does not name. No such request may be answered
// with 200, whether the model is ready, sleeps, is loaded or unknown.
conversation trespasser(random_source& draw, const target& t) {
  target mine = t;
  mine.keys = {t.bound_key};
  conversation c;
  c.what = "a key that asks for the model of another";
  c.script = {{post(draw, mine, {"/v1/completions", wish(draw, any_lodger(draw))}).text(),
               static_cast<int>(draw.between(0, 1800))}};
  c.linger_ms = static_cast<int>(draw.between(200, 900));
  c.must_not_hear = " 200 OK";
  return c;
}

}  // namespace

std::vector<conversation> demand_talk(random_source& draw, const target& t) {
  std::vector<conversation> all = {landlord(draw, t, !t.guest_source.empty() && draw.chance(40))};
  for (std::size_t n = draw.between(10, 50); n > 0; --n)
    all.push_back(!t.bound_key.empty() && draw.chance(25) ? trespasser(draw, t) : waiter(draw, t));
  return all;
}

}  // namespace weir::stranger
