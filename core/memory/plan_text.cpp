#include "core/memory/plan_text.h"

#include <algorithm>
#include <boost/json.hpp>
#include <numeric>

#include "core/json_line.h"

namespace weir::core {
namespace {

namespace json = boost::json;

std::string giga(std::uint64_t bytes) { return fmt::format("{:.1f}G", static_cast<double>(bytes) / 1e9); }

std::string device_line(const memory_plan::device_row& d, std::size_t width) {
  if (d.total == 0) return fmt::format("{:<{}} total unknown", "device " + d.name, width);
  std::string line =
      fmt::format("{:<{}} {:>7} total {:>7} outside {:>7} context {:>7} reserve", "device " + d.name, width,
                  giga(d.total), giga(d.outside), giga(d.context), giga(d.reserve));
  if (d.loaded != 0) line += fmt::format(" {:>7} loaded", giga(d.loaded));
  return line;
}

std::string model_line(const planned_model& m, std::size_t width) {
  return fmt::format("{:<{}} {:>7} weights {:>7} workspaces {:>7} runtime {:>7} pages {:>9} tokens",
                     "  " + m.name, width, giga(m.lines.weights), giga(m.lines.workspaces),
                     giga(m.lines.runtime), giga(m.lines.pages), m.kv_tokens);
}

// What the pool of a model that stays gives; empty: nothing.
std::string given_line(const memory_plan::device_row& d, std::size_t pool, std::size_t width) {
  const giving_pool& p = d.pools[pool];
  const auto pages = d.left_with.empty() ? p.pages : d.left_with[pool];
  if (pages == p.pages) return {};
  return fmt::format("{:<{}} gives {} of its {} pages ({})", "  " + p.model, width, p.pages - pages, p.pages,
                     giga((p.pages - pages) * p.page_bytes));
}

json::array gives_of(const memory_plan::device_row& d) {
  json::array out;
  for (std::size_t i = 0; i < d.left_with.size(); ++i) {
    const giving_pool& p = d.pools[i];
    if (d.left_with[i] == p.pages) continue;
    const auto pages = p.pages - d.left_with[i];
    out.push_back(json::object{{"name", p.model}, {"pages", pages}, {"bytes", pages * p.page_bytes}});
  }
  return out;
}

// What is free beside the reserve, of each device where there are several.
std::string free_text(const memory_plan& p) {
  std::string out;
  for (const auto& d : p.devices) {
    if (d.total == 0) continue;
    if (!out.empty()) out += ", ";
    out += giga(d.free) + " free";
    if (p.devices.size() > 1) out += " on " + d.name;
  }
  return out.empty() ? "no device says how much memory it has" : out + " beside the reserve";
}

std::string order_text(const memory_plan& p) {
  std::string out;
  for (const auto& m : p.models) out += (out.empty() ? "" : ", ") + m.name;
  return out;
}

json::object json_of(const memory_plan::device_row& d) {
  json::object out{{"device", d.name},     {"total", d.total},     {"outside", d.outside},
                   {"context", d.context}, {"reserve", d.reserve}, {"free", d.free}};
  if (d.loaded != 0) out["loaded"] = d.loaded;
  if (!d.left_with.empty()) out["gives"] = gives_of(d);
  return out;
}

json::object json_of(const memory_plan& p, std::size_t order) {
  const planned_model& m = p.models[order];
  std::uint32_t layers = 0;
  for (const pool_group& g : m.pools) layers += g.layers;
  return {{"name", m.name},
          {"order", order},
          {"device", json::array{p.devices[m.device].name}},
          {"layers", json::array{layers}},
          {"weights", m.lines.weights},
          {"workspaces", m.lines.workspaces},
          {"runtime", m.lines.runtime},
          {"pages", m.lines.pages},
          {"kv_tokens", m.kv_tokens},
          {"context", m.context}};
}

}  // namespace

std::string shortage_text(const memory_plan& p) {
  return fmt::format("does not fit: {} lacks {} bytes ({}), first for {}", p.lacks->device, p.lacks->bytes,
                     giga(p.lacks->bytes), p.lacks->of);
}

std::vector<std::string> plan_lines(const memory_plan& p) {
  std::size_t width = 0;
  for (const auto& d : p.devices) width = std::max(width, d.name.size() + sizeof "device");
  for (const auto& m : p.models) width = std::max(width, m.name.size() + 2);
  std::vector<std::string> out;
  for (std::size_t d = 0; d < p.devices.size(); ++d) {
    out.push_back(device_line(p.devices[d], width));
    for (const auto& m : p.models)
      if (m.device == d) out.push_back(model_line(m, width));
    for (std::size_t i = 0; i < p.devices[d].pools.size(); ++i)
      if (auto line = given_line(p.devices[d], i, width); !line.empty()) out.push_back(std::move(line));
  }
  out.push_back(p.fits() ? fmt::format("fits; {}; the load order is {}", free_text(p), order_text(p))
                         : shortage_text(p));
  for (const auto& a : p.assumed) out.push_back("assumed: " + a);
  for (const auto& n : p.notes) out.push_back("note: " + n);
  return out;
}

std::string plan_json(const memory_plan& p) {
  json::object out{{"weir_plan", 1}, {"fits", p.fits()}};
  json::array devices, models;
  for (const auto& d : p.devices) devices.push_back(json_of(d));
  for (std::size_t i = 0; i < p.models.size(); ++i) models.push_back(json_of(p, i));
  out["devices"] = std::move(devices);
  out["models"] = std::move(models);
  if (p.lacks)
    out["short"] = json::object{{"device", p.lacks->device}, {"bytes", p.lacks->bytes}, {"for", p.lacks->of}};
  if (!p.assumed.empty()) out["assumed"] = json::array(p.assumed.begin(), p.assumed.end());
  if (!p.notes.empty()) out["notes"] = json::array(p.notes.begin(), p.notes.end());
  return json_line(out);
}

}  // namespace weir::core
