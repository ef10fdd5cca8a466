// Orders at a gateway: which worker they go to, and what the models of a cell look like.
#include "net/http/cell_orders.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/support/http_client.h"
#include "tests/support/model_talk.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::cell_orders_test {
namespace {

using namespace weir::net;
using actors::fleet::seen_worker;
using net::reply;
using verb = core::fleet::model_verb;
using names = std::vector<std::string>;

const std::string a = "aaaaaaaaaaaaaaaa", b = "bbbbbbbbbbbbbbbb", c = "cccccccccccccccc";

seen_worker worker(std::string name, std::vector<core::fleet::known_model> known) {
  seen_worker w;
  w.board.worker = std::move(name);
  w.board.known = std::move(known);
  return w;
}
core::fleet::known_model model(std::string name, std::string state, std::uint64_t bytes = 0) {
  return {std::move(name), std::move(state), bytes, 1, ""};
}
core::result<cell_order> order(endpoint to, std::string name, std::string_view body) {
  return read_cell_order({to, std::move(name)}, body, false, 1000);
}
names workers_of(const core::result<cell_order>& o, const std::vector<seen_worker>& all) {
  REQUIRE(o.has_value());
  const auto w = workers_for(*o, all);
  CAPTURE(w ? std::string() : w.error().message);
  REQUIRE(w.has_value());
  return *w;
}

const std::vector<seen_worker> cell{worker(a, {model("chat", "ready", 100), model("code", "absent")}),
                                    worker(b, {model("chat", "ready", 10), model("rare", "asleep", 1)}),
                                    worker(c, {model("old", "failed")})};

}  // namespace

TEST_CASE("an order goes to the worker that it names, without that member") {
  const auto o = order(endpoint::add_model, "", R"({"name":"chat","source":"sim","on":"bbbbbbbbbbbbbbbb"})");
  CHECK(workers_of(o, cell) == names{b});
  CHECK(o->wish.body == R"({"name":"chat","source":"sim"})");
  CHECK(o->wish.verb == verb::add);
  const auto unknown = order(endpoint::add_model, "", R"({"name":"chat","on":"dddddddddddddddd"})");
  CHECK(workers_for(*unknown, cell).error().code == core::errc::not_found);
  CHECK(order(endpoint::add_model, "", R"({"on":"chat"})").error().param == "on");
  CHECK(order(endpoint::add_model, "", R"({"on":7})").error().param == "on");
  CHECK(order(endpoint::add_model, "", "no json").error().code == core::errc::invalid_param);
  CHECK(order(endpoint::load_model, "", "{}").error().code == core::errc::not_supported);
  CHECK(!order(endpoint::swap_models, "", std::string(70'000, ' ')));
}

TEST_CASE(
    "a load goes to workers that know the model, then to those with least, then to those that have it") {
  CHECK(workers_of(order(endpoint::add_model, "", R"({"name":"code"})"), cell) == names{a, c, b});
  CHECK(workers_of(order(endpoint::add_model, "", R"({"name":"new"})"), cell) == names{c, b, a});
  CHECK(workers_of(order(endpoint::plan_model, "", R"({"name":"chat"})"), cell) == names{c, b, a});
  CHECK(workers_of(order(endpoint::change_model, "rare", R"({"action":"load"})"), cell) == names{b, c, a});
  auto some = cell;
  some[0].suspected = true;
  some[2].board.state = core::fleet::worker_state::draining;
  CHECK(workers_of(order(endpoint::add_model, "", R"({"name":"new"})"), some) == names{b});
  some[1].suspected = true;
  const auto nobody = workers_for(*order(endpoint::add_model, "", R"({"name":"new"})"), some);
  CHECK(nobody.error().code == core::errc::unavailable);
}

TEST_CASE("any other order goes to the one worker that knows the model") {
  CHECK(workers_of(order(endpoint::change_model, "rare", R"({"action":"wake"})"), cell) == names{b});
  CHECK(workers_of(order(endpoint::remove_model, "old", ""), cell) == names{c});
  const auto of_two = order(endpoint::change_model, "chat", R"({"action":"unload"})");
  const auto which = workers_for(*of_two, cell);
  CHECK(which.error().param == "on");
  CHECK(which.error().message.find(a + ", " + b) != std::string::npos);
  CHECK(workers_for(*order(endpoint::remove_model, "nothing", ""), cell).error().code ==
        core::errc::model_not_found);
  CHECK(workers_for(*order(endpoint::swap_models, "", R"({"out":["chat"]})"), cell).error().param == "on");
  const auto removal = order(endpoint::remove_model, "chat", R"({"on":"aaaaaaaaaaaaaaaa"})");
  CHECK(workers_of(removal, cell) == names{a});
  CHECK(removal->wish.body.empty());
}

TEST_CASE("a load that a worker cannot carry out goes to the next, and its answer comes back as it is") {
  boost::asio::io_context io;
  names asked;
  std::vector<unsigned> says{422, 503, 201};
  net::server_options o;
  o.fleet = [] {
    return std::make_shared<actors::fleet::fleet_figures>(actors::fleet::fleet_figures{cell, {}});
  };
  o.order_worker = [&](std::string w, core::fleet::model_wish, boost::asio::any_io_executor ex,
                       std::function<void(core::result<core::fleet::wish_answer>)> done) {
    asked.push_back(w);
    const core::fleet::wish_answer said{says[asked.size() - 1], {{"Retry-After", "9"}}, "{\"said\":1}"};
    boost::asio::post(ex, [done, said] { done(said); });
  };
  std::vector<reply> replies;
  const auto run = [&](endpoint to, std::string name, std::string_view body) {
    asked.clear();
    begin_cell_order(o, *order(to, std::move(name), body), io.get_executor(),
                     [&](reply r) { replies.push_back(std::move(r)); });
    io.restart();
    io.run();
    return replies.back();
  };
  const auto r = run(endpoint::add_model, "", R"({"name":"new"})");
  CHECK(asked == names{c, b, a});
  CHECK(r.status == 201);
  CHECK(r.body == "{\"said\":1}");
  CHECK(r.headers.at(0) == std::pair<std::string, std::string>("Retry-After", "9"));
  CHECK(r.headers.at(1) == std::pair<std::string, std::string>("x-weir-worker", a));
  CHECK(run(endpoint::change_model, "rare", R"({"action":"sleep"})").status == 422);  // no other is asked
  CHECK(asked == names{b});
  CHECK(run(endpoint::remove_model, "nothing", "").status == 404);
  CHECK(asked.empty());
  CHECK(replies.size() == 3);
}

TEST_CASE("the models of a cell are listed by name, each with its workers") {
  const auto body = boost::json::parse(cell_models_body(cell)).as_object();
  const auto& models = body.at("models").as_array();
  REQUIRE(models.size() == 4);
  CHECK(models[0].at("name") == "chat");
  CHECK(models[0].at("state") == "ready");
  REQUIRE(models[0].at("workers").as_array().size() == 2);
  CHECK(models[0].at("workers").at(1).at("worker").as_string() == std::string_view(b));
  CHECK(models[0].at("workers").at(1).at("bytes") == 10);
  CHECK(models[3].at("name") == "rare");
  CHECK(models[3].at("state") == "asleep");
  CHECK(body.at("workers").as_array().size() == 3);
  CHECK(cell_models_body({}) == R"({"models":[],"workers":[]})");
}

TEST_CASE("the engines of a cell's models have their class, where it is known") {
  auto all = cell;
  for (const std::uint64_t arithmetic : {0xfeedu, 0u})
    all[0].board.models.push_back({.name = "chat", .arithmetic = arithmetic});
  const auto body = boost::json::parse(cell_models_body(all)).as_object();
  const auto& engines = body.at("models").at(0).at("workers").at(0).at("engines").as_array();
  REQUIRE(engines.size() == 2);
  CHECK(engines[0].at("class") == "000000000000feed");
  CHECK(!engines[1].as_object().contains("class"));
}

TEST_CASE("a gateway's admin routes show its workers and give them orders, for an admin's key alone") {
  tests::server_options o;
  o.net.api_keys = *net::parse_api_keys("root admin\nfew models=chat\n", "F");
  o.net.fleet = [] {
    return std::make_shared<actors::fleet::fleet_figures>(actors::fleet::fleet_figures{cell, {}});
  };
  o.net.order_worker = [](std::string to, core::fleet::model_wish wish, boost::asio::any_io_executor ex,
                          std::function<void(core::result<core::fleet::wish_answer>)> done) {
    const std::string said = wish.any_path ? wish.body : std::string("no admin");
    boost::asio::post(ex, [done, to, said] {
      if (to == c) return done(core::make_error(core::errc::unavailable, "it does not answer"));
      done(core::fleet::wish_answer{202, {{"Retry-After", "4"}}, said});
    });
  };
  server_fixture f(o);
  http_client client(f.port());
  const std::string admin = bearer_line("root"), few = bearer_line("few");
  CHECK(client.get("/v1/admin/models", few).status == 403);
  CHECK(client.get("/v1/admin/models", admin).json().at("models").as_array().size() == 4);
  const std::string order = R"({"action":"wake"})";
  CHECK(client.post("/v1/admin/models/rare", order, few).status == 403);
  const auto said = client.post("/v1/admin/models/rare", order, admin);
  CHECK(said.status == 202);
  CHECK(said.text == order);
  CHECK(said.header("Retry-After") == "4");
  CHECK(said.header("x-weir-worker") == b);
  CHECK(client.post("/v1/admin/models/chat", order, admin).error().at("param") == "on");
  CHECK(client.ask("DELETE", "/v1/admin/models/old", {}, admin).status == 503);
  CHECK(client.post("/models/load", R"({"model":"chat"})", admin).status == 400);
}

}  // namespace weir::tests::cell_orders_test
