// What a frame costs the harness between the socket and its record: no allocation.
#include "net/load/answer_reader.h"
#include "tests/net/load/spoken.h"
#include "tests/support/counted_allocations.h"

namespace weir::tests::frame_allocation_test {

using namespace weir::load;

TEST_CASE("a frame allocates nothing, whether it is plain or needs a whole JSON parser") {
  const auto m = speaking("ws://h");
  for (const std::string text : {"w001 ", "\\n", "gr\xC3\xBC\xC3\x9F"}) {
    CAPTURE(text);
    talk t(m, 1);
    t.feed(upgrade_answer(t) + server_frame(R"({"type":"session.created"})"));
    stream_record r;
    r.frames.reserve(1000);
    answer_reader a(std::move(r), false);
    question q;
    q.id = "r0";
    t.ask(q);
    a.understand(t, 0);
    int frames = 0;
    const auto read = [&](int seq) {
      const auto bytes = server_frame(fmt::format(
          R"({{"type":"response.delta","id":"r0","seq":{},"delta":"{}","t":{}}})", seq, text, 1000 * seq));
      counting = true;
      const auto into = t.room();
      bytes.copy(into.data(), into.size());
      t.took(bytes.size());
      frames += static_cast<int>(a.understand(t, 1000 * seq));
      const bool silent = t.take_to_send().empty();
      counting = false;
      CHECK(silent);
    };
    read(1);  // makes room
    allocated = 0;
    for (int seq = 2; seq <= 500; ++seq) read(seq);
    CHECK(allocated == 0);
    CHECK(frames == 500);
    CHECK(a.record().gaps == 0);
  }
}

}  // namespace weir::tests::frame_allocation_test
