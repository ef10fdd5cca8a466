// The pages that name metrics beside the server: docs/grafana.json asks for nothing that is not served, and
// docs/metrics.md lists exactly what is.
#include <boost/json/parse.hpp>
#include <fstream>
#include <regex>
#include <sstream>

#include "actors/fleet/gateway_side.h"
#include "net/metrics/metrics.h"
#include "tests/support/http_client.h"
#include "tests/support/prometheus_reader.h"
#include "tests/support/source_dir.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::dashboard_test {
namespace {

std::string text_of(const char* file) {
  std::stringstream text;
  text << std::ifstream(weir::tests::source_dir().string() + "/docs/" + file).rdbuf();
  REQUIRE(text.str().size() > 1000);
  return text.str();
}

std::shared_ptr<const actors::fleet::fleet_figures> a_fleet() {
  auto now = std::make_shared<actors::fleet::fleet_figures>();
  auto& w = now->workers.emplace_back();
  w.board.worker = "abc";
  w.board.models.emplace_back().name = "sim";
  return now;
}

// The metrics of a gateway after a refusal and the end of a socket, so that every metric has a sample.
prometheus_reader served() {
  server_options o;
  o.net.fleet = a_fleet;
  server_fixture f(o);
  http_client h(f.port());
  CHECK(h.get("/nothing").status == 404);
  {
    ws_client c(f.port());
    c.read("session.created");
    c.drop();
  }
  std::string text;
  server_fixture::until([&] {
    text = h.get("/metrics").body();
    return prometheus_reader(text).sum("weir_sessions_closed_total") == 1;
  });
  return prometheus_reader(text);
}

std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it)
    found.insert((*it)[1]);
  return found;
}

// Labels that an expression of PromQL names: in matchers, in what it groups by, and in label_values().
std::set<std::string> labels_in(const std::string& expression) {
  auto names = matches(expression, R"re([{,]\s*([a-z_]+)\s*(?:=~|!~|!=|=)\s*")re");
  names.merge(matches(expression, R"re(label_values\([^,]*,\s*([a-z_]+)\))re"));
  for (const auto& list : matches(expression, R"re(\b(?:by|without)\s*\(([^)]*)\))re"))
    for (const auto& name : matches(list, "([a-z_]+)")) names.insert(name);
  return names;
}

// Every query of the dashboard, with the legend that shows its labels.
struct query {
  std::string expression, legend;
};
void collect(const boost::json::value& v, std::vector<query>& out) {
  if (const auto* list = v.if_array())
    for (const auto& e : *list) collect(e, out);
  const auto* o = v.if_object();
  if (!o) return;
  if (const auto* expression = o->if_contains("expr")) {
    const auto* legend = o->if_contains("legendFormat");
    out.push_back({expression->as_string().c_str(), legend ? legend->as_string().c_str() : ""});
  }
  if (const auto* text = o->if_contains("query"); text && text->is_string())
    if (const std::string asked = text->as_string().c_str(); asked.find("label_values") != asked.npos)
      out.push_back({asked, ""});
  for (const auto& [key, member] : *o) collect(member, out);
}

}  // namespace

TEST_CASE("dashboard: every metric and every label that it asks for is served") {
  const prometheus_reader m = served();
  std::vector<query> queries;
  const auto dashboard = boost::json::parse(text_of("grafana.json"));
  collect(dashboard, queries);
  CHECK(queries.size() > 20);
  std::set<std::string> shown;
  for (const auto& q : queries) {
    INFO(q.expression);
    const auto names = matches(q.expression, R"re(\b((?:weir|process)_[a-z_]+))re");
    REQUIRE_FALSE(names.empty());
    std::set<std::string> labels;
    for (const auto& name : names) {
      INFO(name);
      REQUIRE(m.family_of(name) != nullptr);
      CHECK((m.family_of(name)->type == "histogram") == (m.families.find(name) == m.families.end()));
      shown.insert(name);
      labels.merge(m.labels_of(name));
    }
    auto used = labels_in(q.expression);
    used.merge(matches(q.legend, R"re(\{\{([a-z_]+)\}\})re"));
    for (const auto& label : used) {
      INFO(label);
      CHECK(labels.contains(label));
    }
  }
  CHECK(shown.size() > 20);
}

TEST_CASE("dashboard: a panel does not ask for a label that its expression has summed away") {
  std::vector<query> queries;
  collect(boost::json::parse(text_of("grafana.json")), queries);
  for (const auto& q : queries) {
    if (q.expression.find("sum") == std::string::npos) continue;
    INFO(q.expression);
    const auto kept = labels_in(q.expression);
    for (const auto& label : matches(q.legend, R"re(\{\{([a-z_]+)\}\})re")) CHECK(kept.contains(label));
  }
}

TEST_CASE("dashboard: the page of metrics lists each one that is served, its type and its labels") {
  const prometheus_reader m = served();
  // | `name` | type | `label`, `label` | meaning | vLLM's name |
  const std::regex row(R"re(\n\| `([a-z_]+)` \| (counter|gauge|histogram) \|([^|]*)\|)re");
  const std::string page = text_of("metrics.md");
  std::set<std::string> listed;
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it) {
    const std::string name = (*it)[1];
    CAPTURE(name);
    CHECK(listed.insert(name).second);
    REQUIRE(m.families.contains(name));
    const auto& f = m.families.at(name);
    CHECK(f.type == (*it)[2]);
    auto labels = m.labels_of(f.type == "histogram" ? name + "_count" : name);
    CHECK(matches((*it)[3], "`([a-z_]+)`") == labels);
  }
  for (const auto& [name, f] : m.families) {
    CAPTURE(name);
    CHECK(listed.contains(name));
  }
}

}  // namespace weir::tests::dashboard_test
