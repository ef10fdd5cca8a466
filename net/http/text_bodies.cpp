#include "net/http/text_bodies.h"

#include "net/protocol/json.h"

namespace weir::net {
namespace {

// A body, and what it is made of.
template <class Held>
struct held_body {
  explicit held_body(Held h) : held(std::move(h)) {}
  const Held held;
  body_parts parts;
};

template <class Held>
std::shared_ptr<body_parts> parts_of(const std::shared_ptr<held_body<Held>>& body) {
  return {body, &body->parts};
}

}  // namespace

std::shared_ptr<body_parts> tokenized_body(actors::tokenized t) {
  const auto body = std::make_shared<held_body<actors::tokenized>>(std::move(t));
  const auto list = [&of = body->held](auto append) {
    return [&of, append](std::string& out, std::size_t i) {
      if (i > 0) out += ',';
      append(out, of, of.ids[i]);
    };
  };
  const std::size_t n = body->held.ids.size();
  body->parts.add(R"({"ids":[)");
  body->parts.add(n, list([](std::string& out, const auto&, core::token_id id) {
                    append_number(out, std::int64_t{id});
                  }));
  body->parts.add(R"(],"pieces":[)");
  body->parts.add(n, list([](std::string& out, const actors::tokenized& of, core::token_id id) {
                    append_json_string(out, of.tokenizer->piece(id));
                  }));
  body->parts.add("]}");
  return parts_of(body);
}

std::shared_ptr<body_parts> detokenized_body(actors::detokenized t) {
  const auto body = std::make_shared<held_body<actors::detokenized>>(std::move(t));
  body->parts.add(R"({"text":")");
  body->parts.add_json_text(body->held.text);
  body->parts.add("\"}");
  return parts_of(body);
}

}  // namespace weir::net
