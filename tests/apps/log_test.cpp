#include "apps/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <catch2/catch.hpp>

#include <boost/json/parse.hpp>
#include <sstream>

namespace weir::apps {
namespace {

// What a logger of this name writes to its sink.
std::string written(log_format f, const char* logger, std::string_view said) {
  std::ostringstream out;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(out);
  sink->set_formatter(formatter_of(f));
  spdlog::logger(logger, sink).warn(said);
  return out.str();
}

constexpr const char* hostile = "bad\nline \x1b[31mred\" \xff";

}  // namespace

TEST_CASE("a line of the log is one line, whatever it says") {
  const std::string text = written(log_format::text, "weir", hostile);
  CHECK(text.ends_with(" warning bad\\nline \\x1b[31mred\" \\xff\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("as JSON a line is an object with a time, a level and the message") {
  const std::string line = written(log_format::json, "weir", hostile);
  CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  const auto object = boost::json::parse(line).as_object();
  CHECK(object.size() == 3);
  CHECK(object.at("level") == "warning");
  CHECK(object.at("message") == "bad\\nline \\x1b[31mred\" \\xff");
  CHECK(object.at("time").as_string().find('T') == 10);
}

TEST_CASE("as JSON a request's line has its members in place of a message") {
  const auto object =
      boost::json::parse(written(log_format::json, request_log::name, R"("event":"request","out":5)"))
          .as_object();
  CHECK(object.size() == 4);
  CHECK(object.at("event") == "request");
  CHECK(object.at("out") == 5);
}

}  // namespace weir::apps
