// Orders for models, and boards that say which models a worker knows: what goes in comes out, within bounds.
#include "core/fleet/order_frame.h"

#include <catch2/catch.hpp>

#include "core/fleet/fleet_board.h"

namespace weir::tests::order_frame_test {

using namespace weir::core::fleet;

TEST_CASE("orders and their answers are read as they were written, and no part of one is read") {
  model_wish w;
  w.permit = 0x1234567890abcdef;
  w.verb = model_verb::plan;
  w.any_path = true;
  w.name = "chat";
  w.body = R"({"name":"chat"})";
  const auto frame = frame_of(w);
  const auto read = read_model_wish(frame);
  REQUIRE(read.has_value());
  CHECK(read->permit == w.permit);
  CHECK(read->verb == w.verb);
  CHECK(read->any_path);
  CHECK(read->name == w.name);
  CHECK(read->body == w.body);
  for (std::size_t cut = 0; cut < frame.size(); ++cut) CHECK(!read_model_wish(frame.substr(0, cut)));
  CHECK(!read_permit(frame));
  const wish_answer a{409, {{"Retry-After", "3"}}, "{}"};
  const auto answer = read_wish_answer(frame_of(a));
  REQUIRE(answer.has_value());
  CHECK(answer->status == 409);
  CHECK(answer->headers == a.headers);
  CHECK(answer->body == "{}");
  CHECK(read_permit(frame_of(permit{77}))->number == 77);
  CHECK(read_permit_wish(frame_of(permit_wish{})).has_value());
}

TEST_CASE("an order or an answer beyond its bounds is none") {
  model_wish w;
  w.name = std::string(longest_wish_name + 1, 'x');
  CHECK(!read_model_wish(frame_of(w)));
  w.name.pop_back();
  CHECK(read_model_wish(frame_of(w)));
  w.body = std::string(longest_wish + 1, ' ');
  CHECK(!read_model_wish(frame_of(w)));
  wish_answer a{99, {}, ""};
  CHECK(!read_wish_answer(frame_of(a)));
  a.status = 200;
  a.headers.resize(most_answer_headers);
  CHECK(read_wish_answer(frame_of(a)));
  a.headers.resize(most_answer_headers + 1);
  CHECK(!read_wish_answer(frame_of(a)));
}

TEST_CASE("a board has the models that its worker knows, within a quarter of its bytes") {
  fleet_board b;
  b.worker = "wwwwwwww22222222";
  b.known = {{"chat", "ready", 1000, 2, ""}, {"other", "failed", 5, 1, "it has no tokenizer"}};
  auto read = read_board(json_of(b));
  REQUIRE(read.has_value());
  REQUIRE(read->known.size() == 2);
  CHECK(read->known[0].name == "chat");
  CHECK(read->known[0].state == "ready");
  CHECK(read->known[0].bytes == 1000);
  CHECK(read->known[0].share == 2);
  CHECK(read->known[1].reason == "it has no tokenizer");
  CHECK(read->known_left_out == 0);
  b.known.assign(2000, {std::string(200, 'n'), "absent", 0, 1, ""});
  b.gateways["abcdefgh234567ab"] = {7, 8};
  const auto text = json_of(b);
  CHECK(text.size() <= longest_board);
  read = read_board(text);
  REQUIRE(read.has_value());
  CHECK(read->known.size() > 20);
  CHECK(read->known.size() + read->known_left_out == 2000);
  CHECK(read->gateways.size() == 1);
  CHECK(read_board(json_of(*read))->known_left_out == read->known_left_out);
}

}  // namespace weir::tests::order_frame_test
