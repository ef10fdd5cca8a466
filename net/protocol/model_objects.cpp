#include "net/protocol/model_objects.h"

#include <algorithm>

#include "net/protocol/json.h"

namespace weir::net {
namespace {

using actors::model_state;

void append_bytes(std::string& out, std::string_view key, const actors::model_bytes& b) {
  append_object(out, key, [&] {
    append_count(out, "weights", b.weights);
    append_count(out, "pages", b.pages);
    append_count(out, "workspaces", b.workspaces);
    append_count(out, "runtime", b.runtime);
    append_count(out, "host", b.host_pages);
    append_count(out, "asleep", b.asleep);
  });
}

void append_flag(std::string& out, std::string_view key, bool value) {
  append_key(out, key);
  out += value ? "true" : "false";
}

// llama.cpp's form of the progress of a load, which has one stage here.
void append_stage(std::string& out, double progress) {
  constexpr std::string_view stage = "text_model";
  append_object(out, "progress", [&] {
    append_key(out, "stages");
    ((out += "[\"") += stage) += "\"]";
    append_text(out, "current", stage);
    append_count(out, "value", progress);
  });
}

void append_router_status(std::string& out, const actors::model_status& m) {
  append_object(out, "status", [&] {
    append_text(out, "value", router_word(m.state));
    if (m.state == model_state::loading) append_stage(out, progress_of(m));
    if (m.state != model_state::failed) return;
    append_flag(out, "failed", true);
  });
}

void append_limits(std::string& out, const core::model_limits& l) {
  if (l.none()) return;
  append_object(out, "limits", [&] {
    core::visit_limits([&](std::string_view name, auto member, auto...) {
      if (l.*member) append_count(out, name, *(l.*member));
    });
  });
}

}  // namespace

double progress_of(const actors::model_status& m) noexcept {
  if (m.total == 0) return 0;
  return std::min(1.0, static_cast<double>(m.done) / static_cast<double>(m.total));
}

std::string_view router_word(model_state s) noexcept {
  switch (s) {
    case model_state::absent:
      return "unloaded";
    case model_state::loading:
      return "loading";
    case model_state::ready:
    case model_state::draining:  // what runs goes on
      return "loaded";
    case model_state::asleep:
      return "sleeping";
    case model_state::failed:
      break;
  }
  return "failed";
}

void append_model(std::string& out, const actors::model_status& m) {
  append_object(out, [&] {
    append_text(out, "name", m.name);
    append_text(out, "state", actors::name(m.state));
    if (m.level) append_text(out, "level", actors::name(*m.level));
    append_text(out, "source", m.source);
    append_key(out, "device");
    out += '[';
    for (const auto& d : m.devices) {
      if (out.back() != '[') out += ',';
      append_json_string(out, d);
    }
    out += ']';
    append_bytes(out, "bytes", m.bytes);
    append_bytes(out, "predicted", m.predicted);
    if (m.state == model_state::loading) {
      append_count(out, "progress", progress_of(m));
      append_count(out, "done", m.done);
      append_count(out, "total", m.total);
    }
    append_count(out, "running", m.running);
    append_count(out, "queued", m.queued);
    append_count(out, "share", m.share);
    append_flag(out, "pinned", m.pinned);
    append_limits(out, m.limits);
    if (m.share_asked > 0) {
      append_count(out, "share_asked", m.share_asked);
      append_count(out, "share_got", m.share_got);
    }
    if (m.sleeps + m.nap_failures > 0) {
      append_count(out, "sleeps", m.sleeps);
      append_count(out, "wakes", m.wakes);
      append_count(out, "sleep_failures", m.nap_failures);
    }
    if (m.gave_way + m.grew > 0) {
      append_count(out, "pages_given", m.pages_given);
      append_count(out, "pages_taken", m.pages_taken);
    }
    if (m.last_wake_s) append_count(out, "last_wake_s", *m.last_wake_s);
    if (m.last_used_s) append_count(out, "last_used_s", *m.last_used_s);
    if (m.context > 0) append_count(out, "context", m.context);
    if (m.kv_tokens > 0) append_count(out, "kv_tokens", m.kv_tokens);
    if (!m.reason.empty()) append_text(out, "reason", m.reason);
  });
}

void append_model_figures(std::string& out, const actors::model_status& m,
                          const core::engine_totals& counted) {
  append_object(out, [&] {
    append_text(out, "name", m.name);
    append_text(out, "state", actors::name(m.state));
    if (m.level) append_text(out, "level", actors::name(*m.level));
    if (m.state == model_state::loading) append_count(out, "progress", progress_of(m));
    append_count(out, "running", m.running);
    append_count(out, "queued", m.queued);
    if (m.last_used_s) append_count(out, "last_used_s", *m.last_used_s);
    append_flag(out, "pinned", m.pinned);
    append_count(out, "sleeps", m.sleeps);
    append_count(out, "wakes", m.wakes);
    append_count(out, "share", m.share);
    append_count(out, "share_asked", m.share_asked);
    append_count(out, "share_got", m.share_got);
    append_count(out, "device_us", counted.device_us);
    append_count(out, "steps", counted.steps);
    append_count(out, "tokens", counted.tokens);
  });
}

void append_sleep_room(std::string& out, const actors::models_picture& p) {
  append_object(out, [&] {
    append_count(out, "total", p.sleep_total);
    append_count(out, "taken", p.sleep_taken);
  });
}

void append_device(std::string& out, const actors::device_account& d) {
  append_object(out, [&] {
    append_text(out, "device", d.device);
    append_count(out, "total", d.total);
    append_count(out, "outside", d.outside);
    append_count(out, "context", d.context);
    append_count(out, "reserve", d.reserve);
    append_count(out, "models", d.models);
    append_count(out, "free", d.free);
    append_count(out, "weights", d.lines.weights);
    append_count(out, "workspaces", d.lines.workspaces);
    append_count(out, "runtime", d.lines.runtime);
    append_count(out, "staging", d.lines.staging);
    append_object(out, "pages", [&] {
      append_count(out, "used", d.pages_used);
      append_count(out, "cached", d.pages_cached);
      append_count(out, "free", d.lines.pages - d.pages_used - d.pages_cached);
    });
  });
}

void append_listed(std::string& out, const actors::model_status& m, const actors::model_entry* served,
                   std::string_view alias) {
  const std::uint32_t context = served ? served->context : m.context;
  append_object(out, [&] {
    append_text(out, "id", alias.empty() ? m.name : alias);
    append_text(out, "object", "model");
    append_int(out, "created", served ? served->created_s : 0);
    append_text(out, "owned_by", "weir");
    append_text(out, "state", actors::name(m.state));
    append_router_status(out, m);
    if (context > 0) {
      append_count(out, "context_length", context);
      append_count(out, "max_model_len", context);
    }
    if (context > 0 || !alias.empty()) {
      append_object(out, "meta", [&] {
        if (context > 0) append_count(out, "n_ctx", context);
        if (!alias.empty()) append_text(out, "alias_of", m.name);
      });
    }
    if (!served) return;
    append_count(out, "vocab_size", served->vocab_size);
    append_text(out, "device", served->device);
  });
}

void append_model_event(std::string& out, const actors::model_status& m) {
  const bool loads = m.state == model_state::loading;
  std::string object;
  append_object(object, [&] {
    append_text(object, "event", "model_status");
    append_text(object, "model", m.name);
    append_text(object, "value", router_word(m.state));
    if (loads) append_count(object, "progress", progress_of(m));
    append_object(object, "data", [&] {
      append_text(object, "status", router_word(m.state));
      if (loads) append_stage(object, progress_of(m));
      if (!m.reason.empty()) append_text(object, "error", m.reason);
    });
  });
  ((out += "data: ") += object) += "\n\n";
}

void append_removal_event(std::string& out, std::string_view model) {
  std::string object;
  append_object(object, [&] {
    append_text(object, "event", "model_remove");
    append_text(object, "model", model);
  });
  ((out += "data: ") += object) += "\n\n";
}

std::string props_body(const actors::model_status* m, std::string_view chat_template, bool router) {
  const std::uint32_t context = m ? m->context : 0;
  std::string out;
  append_object(out, [&] {
    if (router) append_text(out, "role", "router");
    if (m) {
      append_text(out, "model_alias", m->name);
      append_text(out, "model", m->name);
      append_router_status(out, *m);
    }
    append_object(out, "default_generation_settings", [&] { append_count(out, "n_ctx", context); });
    append_count(out, "n_ctx", context);
    if (!chat_template.empty()) append_text(out, "chat_template", chat_template);
    append_key(out, "modalities");
    out += R"({"vision":false,"audio":false})";
  });
  return out;
}

}  // namespace weir::net
