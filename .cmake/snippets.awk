# snippets.awk — a page's C++ blocks as one file of tests: `cpp` stands at namespace scope, `cpp test` is a TEST_CASE
# named after the section. Errors are reported at the page's own lines.
function quoted(s) { gsub(/"/, "\\\"", s); return "\"" s "\"" }
BEGIN { print "#include <catch2/catch.hpp>" }
/^## / { section = substr($0, 4); count = 0 }
/^```cpp/ && !inside {
  inside = 1
  test = $2 == "test"
  if (test) printf "TEST_CASE(%s) {\n", quoted("tutorial: " section (count++ ? " (" count ")" : ""))
  printf "#line %d %s\n", NR + 1, quoted(FILENAME)
  next
}
/^```/ && inside { inside = 0; if (test) print "}"; next }
inside { print }
