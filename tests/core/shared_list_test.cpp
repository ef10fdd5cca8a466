#include "core/shared_list.h"

#include <catch2/catch.hpp>
#include <string>

namespace weir::tests::shared_list_test {

using namespace weir::core;

TEST_CASE("shared list: copies have one list together, and what was moved from is empty") {
  shared_list<std::string> a = {"x", "yy"};
  const auto b = a;
  CHECK(b.data() == a.data());
  CHECK(b == std::vector<std::string>{"x", "yy"});
  const auto c = std::move(a);
  CHECK(c.data() == b.data());
  CHECK(a.empty());
  CHECK(a.size() == 0);
  a = c;
  CHECK(a[1] == "yy");
  a = {};
  CHECK(a.empty());
  CHECK(c.size() == 2);
}

TEST_CASE("shared list: it outlives the list that it was copied from") {
  shared_list<int> kept;
  {
    const shared_list<int> first = std::vector<int>(1000, 7);
    kept = first;
  }
  CHECK(kept.size() == 1000);
  CHECK(kept[999] == 7);
}

TEST_CASE("shared list: its bytes are those of its elements, whatever the vector had reserved") {
  std::vector<int> wide{1, 2, 3};
  wide.reserve(1000);
  CHECK(shared_list<int>(std::move(wide)).bytes() == 3 * sizeof(int));
  CHECK(shared_list<int>().bytes() == 0);
}

}  // namespace weir::tests::shared_list_test
