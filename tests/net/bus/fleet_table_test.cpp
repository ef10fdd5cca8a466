#include "net/bus/fleet_table.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>

namespace weir::tests::fleet_table_test {

using core::fleet::board_model;
using core::fleet::fleet_board;

net::seen_boards two_workers() {
  board_model chat;
  chat.name = "chat";
  chat.device = "cuda:0";
  chat.context = 8192;
  chat.batch = 64;
  chat.jobs = 3;
  chat.prompt_tokens = 120;
  chat.rate = 1234.4;
  chat.arithmetic = 0xc1a55001;
  fleet_board a, b;
  a.worker = "a";
  a.models = {chat};
  chat.arithmetic = 0;
  b.worker = "bee";
  b.state = core::fleet::worker_state::draining;
  chat.rate = 0;
  chat.jobs = 0;
  b.models = {chat};
  return {{"a", a}, {"bee", b}};
}

TEST_CASE("fleet: the table has a line a model of each worker, in columns") {
  CHECK(net::fleet_table(two_workers()) ==
        "worker  model  device  class             context  jobs  prompts  tok/s  state\n"
        "a       chat   cuda:0  00000000c1a55001  8192     3/64  120      1234   ready\n"
        "bee     chat   cuda:0  -                 8192     0/64  120      -      draining\n");
}

TEST_CASE("fleet: a worker without models, a closed model and nobody at all are shown") {
  CHECK(net::fleet_table({}) == "no worker has said anything\n");
  auto boards = two_workers();
  boards["a"].models.clear();
  boards["bee"].models[0].closed = "the model is being unloaded";
  const auto text = net::fleet_table(boards);
  CHECK(text.find("a       -      -") != std::string::npos);
  CHECK(text.find("the model is being unloaded\n") != std::string::npos);
}

TEST_CASE("fleet: workers with different files of a model are named below the table") {
  auto boards = two_workers();
  boards["a"].models[0].files = std::string(64, 'a');
  CHECK(net::fleet_table(boards).find("different files") == std::string::npos);  // the other one gives none
  boards["bee"].models[0].files = boards["a"].models[0].files;
  CHECK(net::fleet_table(boards).find("different files") == std::string::npos);
  boards["bee"].models[0].files = std::string(64, 'b');
  CHECK(net::fleet_table(boards).ends_with(
      "chat: its workers have different files, and a gateway uses those of one digest: aaaaaaaaaaaa (a) "
      "bbbbbbbbbbbb (bee)\n"));
}

TEST_CASE("fleet: what a worker says moves no cursor") {
  auto boards = two_workers();
  boards["a"].models[0].name = "\x1b[2Jchat\n";
  CHECK(net::fleet_table(boards).find('\x1b') == std::string::npos);
  CHECK(std::ranges::count(net::fleet_table(boards), '\n') == 3);
}

TEST_CASE("fleet: the JSON has all boards") {
  auto boards = two_workers();
  boards["a"].worker = "aaaaaaaaaaaaaaaa";  // names as members draw them
  boards["bee"].worker = "bbbbbbbbbbbbbbbb";
  const auto v = boost::json::parse(net::fleet_json(boards));
  const auto& workers = v.at("workers").as_array();
  REQUIRE(workers.size() == 2);
  for (const auto& w : workers) CHECK(core::fleet::read_board(boost::json::serialize(w)).has_value());
  CHECK(boost::json::parse(net::fleet_json({})).at("workers").as_array().empty());
}

}  // namespace weir::tests::fleet_table_test
