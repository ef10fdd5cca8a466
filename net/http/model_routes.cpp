#include "net/http/model_routes.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "net/http/cell_orders.h"
#include "net/protocol/json.h"
#include "net/protocol/model_objects.h"

namespace weir::net {
namespace {

using actors::model_entry;
using actors::model_state;
using actors::model_status;
using actors::models_picture;

// The models that a client may see: those that are ready first, with what the service says of them.
struct shown_models {
  struct one {
    model_status status;
    std::optional<model_entry> served;
    std::string alias;  // empty: it is shown by its own name

    const std::string& name() const { return alias.empty() ? status.name : alias; }
  };
  std::vector<one> all;

  shown_models(hub& h, const bearer& from) {
    models_picture known = h.server().service.all_models();
    std::unordered_map<std::string, model_status*> by_name;
    for (auto& m : known.models) by_name.emplace(m.name, &m);
    for (auto& m : h.server().service.models()) {
      const auto at = by_name.find(m.name);
      if (!from.allows_model(m.name)) continue;
      all.push_back({at == by_name.end() ? ready(m) : *at->second, m, {}});
      if (at != by_name.end()) by_name.erase(at);
    }
    for (auto& m : known.models)
      if (by_name.contains(m.name) && from.allows_model(m.name))
        all.push_back({std::move(m), std::nullopt, {}});
    add_aliases(h.server().service.aliases());
  }

  void add_aliases(const actors::model_aliases& aliases) {
    const std::size_t models = all.size();
    for (const auto& [alias, model] : aliases)
      for (std::size_t i = 0; i < models; ++i)
        if (all[i].status.name == model) {
          one shown{all[i].status, all[i].served, alias};
          all.push_back(std::move(shown));
        }
  }

  // A model that has become ready since the picture.
  static model_status ready(const model_entry& m) {
    model_status s;
    s.name = m.name;
    s.state = model_state::ready;
    s.context = m.context;
    return s;
  }
  void append(std::string& out, std::size_t i) const {
    append_listed(out, all[i].status, all[i].served ? &*all[i].served : nullptr, all[i].alias);
  }
};

// An object with the text `before`, a list of `n` items, and the text `after`.
reply list_reply(std::string before, std::size_t n, body_parts::item item, std::string after) {
  auto parts = std::make_shared<body_parts>();
  parts->add(std::move(before));
  parts->add(n, [item = std::move(item)](std::string& out, std::size_t i) {
    if (i > 0) out += ',';
    item(out, i);
  });
  parts->add(std::move(after));
  reply r;
  r.source = std::move(parts);
  return r;
}

// What ends the list: the names of the presets, where there are any.
std::string end_of_list(const actors::sampling_presets& presets) {
  std::string out = "]";
  if (!presets.empty()) {
    out += R"(,"presets":[)";
    for (const auto& [name, fields] : presets) {
      if (!out.ends_with('[')) out += ',';
      append_json_string(out, name);
    }
    out += ']';
  }
  return out + "}";
}

void append_devices(std::string& out, const models_picture& p) {
  append_key(out, "devices");
  out += '[';
  for (const auto& d : p.devices) append_device(out, d);
  out += ']';
}

}  // namespace

reply no_such_model(const std::string& name) {
  return error_reply(404, "model_not_found", fmt::format("no model is called '{}'", legible(name)), "model");
}

bool is_known_model(hub& h, const std::string& name) {
  const auto known = h.server().service.all_models();
  return std::ranges::find(known.models, name, &model_status::name) != known.models.end();
}

reply list_models(hub& h, const bearer& from) {
  const auto shown = std::make_shared<const shown_models>(h, from);
  const auto item = [shown](std::string& out, std::size_t i) { shown->append(out, i); };
  return list_reply(R"({"object":"list","data":[)", shown->all.size(), item,
                    end_of_list(h.server().service.presets()));
}

reply show_model(hub& h, const std::string& name, const bearer& from) {
  const shown_models shown(h, from);
  for (std::size_t i = 0; i < shown.all.size(); ++i) {
    if (shown.all[i].name() != name) continue;
    std::string out;
    shown.append(out, i);
    return json_reply(std::move(out));
  }
  return no_such_model(name);
}

// `m`: null: of no model.
reply props_of(const shown_models::one* m, bool router) {
  const bool served = m && m->served;
  return json_reply(props_body(m ? &m->status : nullptr,
                               served ? std::string_view(m->served->chat->source()) : std::string_view(),
                               router));
}

reply model_props(hub& h, const std::string& name, const bearer& from) {
  const shown_models shown(h, from);
  if (name.empty()) {
    const auto is_ready = [](const auto& m) {
      return m.alias.empty() && m.status.state == model_state::ready;
    };
    const auto first = std::ranges::find_if(shown.all, is_ready);
    const bool one = std::ranges::count_if(shown.all, is_ready) == 1;
    return props_of(one ? &*first : nullptr, true);
  }
  const auto named = [&](const auto& m) { return m.name() == name; };
  const auto at = std::ranges::find_if(shown.all, named);
  if (at == shown.all.end()) return no_such_model(name);
  return props_of(&*at, false);
}

reply list_all_models(hub& h) {
  if (h.server().options.order_worker) {
    const auto now = h.server().options.fleet();
    reply r = json_reply(cell_models_body(now ? now->workers : std::vector<actors::fleet::seen_worker>()));
    r.headers.emplace_back("Cache-Control", "no-store");
    return r;
  }
  const auto known = std::make_shared<const models_picture>(h.server().service.all_models());
  std::string devices = "]";
  append_devices(devices, *known);
  const auto item = [known](std::string& out, std::size_t i) { append_model(out, known->models[i]); };
  std::string after = devices + R"(,"sleep":)";
  append_sleep_room(after, *known);
  reply r = list_reply(R"({"models":[)", known->models.size(), item, after + "}");
  r.headers.emplace_back("Cache-Control", "no-store");
  return r;
}

void append_models_there(std::string& out, const actors::service& s, const bearer& from) {
  std::unordered_map<std::string, core::engine_totals> counted;
  for (const auto& m : s.figures()) counted.emplace(m.name, m.engine);
  const auto all = s.all_models();
  append_key(out, "models");
  out += '[';
  for (const auto& m : all.models) {
    const bool once = counted.contains(m.name) || m.state == model_state::loading || m.loads > 0;
    if (once && from.allows_model(m.name)) append_model_figures(out, m, counted[m.name]);
  }
  out += ']';
  append_devices(out, all);
}

}  // namespace weir::net
