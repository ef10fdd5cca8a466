#include "net/access/bearer.h"

#include <catch2/catch.hpp>

#include "net/access/job_places.h"

namespace weir::tests::bearer_test {

using namespace weir::net;

namespace {

const std::vector<api_key> keys{"alpha", "beta"};
const std::string secret(32, 's');
constexpr std::int64_t until = 1'000'000;

token_claims claims_for(std::string_view sub) {
  token_claims c;
  c.expires_ms = until;
  c.sub = sub;
  return c;
}

std::optional<bearer> judged(const known_bearers& by, std::string_view text, std::int64_t now = until - 1) {
  const auto got = by.judge(text, now);
  return got ? std::optional(*got) : std::nullopt;
}

}  // namespace

TEST_CASE("bearer: a key is the key itself, and its tokens are users under it") {
  const known_bearers by(keys, secret);
  const auto alpha = judged(by, "alpha"), beta = judged(by, "beta");
  REQUIRE((alpha && beta));
  CHECK(alpha->who.user == 0);
  CHECK(!alpha->token);
  const auto u = judged(by, by.issue(alpha->who.key, claims_for("u")));
  const auto v = judged(by, by.issue(alpha->who.key, claims_for("v")));
  const auto beta_u = judged(by, by.issue(beta->who.key, claims_for("u")));
  REQUIRE((u && v && beta_u));
  CHECK(u->who.key == alpha->who.key);
  CHECK(u->who == judged(by, by.issue(alpha->who.key, claims_for("u")))->who);
  CHECK(u->who != v->who);
  CHECK(beta_u->who.key == beta->who.key);
  CHECK(beta_u->who.user != u->who.user);

  CHECK(u->who.has(u->who));
  CHECK(alpha->who.has(u->who));
  for (const auto& other : {alpha->who, v->who, beta->who, beta_u->who}) CHECK(!u->who.has(other));
  CHECK(!beta->who.has(u->who));
}

TEST_CASE("bearer: tokens without a sub are users of their own") {
  const known_bearers by(keys, secret);
  const auto key = judged(by, "alpha")->who.key;
  const auto one = judged(by, by.issue(key, claims_for(""))), two = judged(by, by.issue(key, claims_for("")));
  REQUIRE((one && two));
  CHECK(one->who.user != 0);
  CHECK(one->who.user != two->who.user);
}

TEST_CASE("bearer: a token is known while its key and its secret are") {
  const known_bearers by(keys, secret), fewer(std::vector<api_key>{"beta"}, secret), random(keys, "");
  const auto token = by.issue(judged(by, "alpha")->who.key, claims_for("u"));
  CHECK(judged(known_bearers(keys, secret), token));
  CHECK(!judged(fewer, token));
  CHECK(!judged(random, token));
  CHECK(!judged(by, token, until));
  CHECK(by.judge(token, until).error() == token_fault::expired);
  CHECK(by.judge("gamma", 0).error() == token_fault::malformed);
  CHECK(!judged(by, ""));
}

TEST_CASE("bearer: where no key is needed, everybody is the same") {
  const known_bearers open({}, "");
  for (const char* text : {"", "alpha", "weir_token_"}) CHECK(judged(open, text)->who == actors::principal{});
}

TEST_CASE("bearer: what a token does not name it does not forbid") {
  bearer b;
  CHECK(b.allows_model("m"));
  CHECK(b.allows_origin(""));
  CHECK(!b.expired(INT64_MAX));
  b.token.emplace();
  b.token->expires_ms = until;
  CHECK(b.allows_model("m"));
  CHECK(b.allows_origin(""));
  b.token->model = "m";
  b.token->origin = "https://a.b";
  CHECK(b.allows_model("m"));
  CHECK(!b.allows_model("n"));
  CHECK(b.allows_origin("https://a.b"));
  for (const char* other : {"", "https://a.b:443", "http://a.b", "null"}) CHECK(!b.allows_origin(other));
  CHECK(!b.expired(until - 1));
  CHECK(b.expired(until));
}

TEST_CASE("job_places: a user has so many jobs at a time, and a place is free when its last copy is gone") {
  auto places = std::make_unique<job_places>();
  const actors::principal u{1, 2}, v{1, 3};
  auto one = places->take(u, 2);
  auto copy = one;
  auto two = places->take(u, 2);
  CHECK((one && two));
  CHECK(!places->take(u, 2));
  CHECK(!places->take(u, 1));
  CHECK(places->take(v, 1));
  CHECK(places->take(v, 1));  // the one before was given back at once
  auto three = places->take(u, 0);
  CHECK(three);
  one.reset();
  CHECK(!places->take(u, 3));
  copy.reset();
  CHECK(places->take(u, 3));
  places.reset();
  two.reset();
}

TEST_CASE("bearer: keys are replaced in place, and only who is gone becomes nobody") {
  known_bearers by(*parse_api_keys("alpha name=a jobs=3\nbeta models=m\ngamma admin\n", "F"), secret);
  const auto alpha = judged(by, "alpha"), beta = judged(by, "beta"), gamma = judged(by, "gamma");
  const auto alpha_token = by.issue(alpha->who.key, claims_for("u")),
             beta_token = by.issue(beta->who.key, claims_for("u"));
  const auto page = judged(by, beta_token);
  CHECK(alpha->key->rights()->jobs == 3);
  CHECK(beta->allows_model("m"));
  CHECK(!beta->allows_model("n"));
  CHECK(!page->allows_model("n"));

  const auto d = by.replace(*parse_api_keys("gamma\ndelta\nalpha name=a jobs=3\n", "F"), {});
  CHECK(d.added == 1);
  CHECK(d.removed == 1);
  CHECK(d.changed == 1);  // gamma is no admin any more
  CHECK(judged(by, "alpha")->key == alpha->key);
  CHECK(judged(by, alpha_token));
  CHECK(judged(by, "delta"));
  CHECK(!judged(by, "beta"));
  CHECK(!judged(by, beta_token));
  CHECK(by.judge(beta_token, 0).error() == token_fault::forged);
  CHECK((beta->removed() && page->removed()));
  CHECK((!alpha->removed() && !gamma->removed()));
  CHECK(!gamma->has_admin_key());  // who holds it already learns of it

  by.replace(*parse_api_keys("beta", "F"), {});
  CHECK(alpha->removed());
  CHECK(judged(by, beta_token));  // its key is there again, and so are its tokens
  CHECK(beta->removed());         // but what was let in before stays out
}

TEST_CASE("bearer: an admin is the key itself that the file calls one, or everybody without keys") {
  const known_bearers by(*parse_api_keys("alpha admin\nbeta\n", "F"), secret);
  const auto alpha = *judged(by, "alpha"), beta = *judged(by, "beta");
  const auto page = *judged(by, by.issue(alpha.who.key, claims_for("u")));
  CHECK(by.is_admin(alpha));
  CHECK(by.asker_of(alpha) == std::nullopt);
  for (const auto& other : {beta, page, bearer{}}) {
    CHECK(!by.is_admin(other));
    CHECK(by.asker_of(other) == other.who);
  }
  const known_bearers open({}, "");
  CHECK(open.is_admin(*judged(open, "")));
}

}  // namespace weir::tests::bearer_test
