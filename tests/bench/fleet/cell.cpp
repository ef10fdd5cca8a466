#include "tests/bench/fleet/cell.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "actors/fleet/board_numbers.h"

namespace weir::bench::fleet {

namespace {

using namespace std::chrono_literals;

constexpr nanos second = 1'000'000'000, board_every = second / 4, landmarks_every = second;
constexpr nanos longest_hop = 3'000'000;  // shorter than any step
constexpr std::string_view model = "llama-3.1-8b";
constexpr std::uint8_t most_tries = 3;  // workers that a job asks

nanos of_seconds(double s) { return static_cast<nanos>(s * 1e9); }

}  // namespace

double capacity_of(const trace& t, const engine::settings& s) {
  constexpr std::uint32_t wanted = 1500, in_line = 200, warm = 300;
  std::vector<job> jobs(in_line);
  engine e(s, t, jobs);
  std::uint32_t asked = 0, ended = 0;
  nanos now = 0, from = 0;
  const auto ask = [&](std::uint32_t index) {
    auto& j = jobs[index];
    j.request = asked * 7 % static_cast<std::uint32_t>(t.requests.size());
    j.key = key_of(j.copy = asked++);
    j.input = t.requests[j.request].input, j.output = t.requests[j.request].output;
    j.refused_at = ~std::uint64_t{0};
    e.submit(index, now);
  };
  for (std::uint32_t i = 0; i < in_line; ++i) ask(i);
  while (ended < wanted) {
    now = e.next();
    e.step(now);
    const auto over = e.ended();
    for (const auto i : over) {
      if (++ended == warm) from = now;
      ask(i);
    }
  }
  return (ended - warm) / (static_cast<double>(now - from) / 1e9);
}

core::result<figures> cell::live(const trace& t, const cell_settings& s) {
  if (s.devices == 0 || s.devices > most_devices)
    return core::bad_param("devices", "devices: a cell has 1 to {}, not {}", most_devices, s.devices);
  cell c(t, s);
  if (auto ok = c.choose_policy(); !ok) return ok.error();
  return c.run();
}

cell::cell(const trace& t, const cell_settings& s)
    : trace_(t),
      settings_(s),
      end_(of_seconds(s.seconds)),
      warm_(of_seconds(s.warm_up_s)),
      random_(s.seed),
      devices_(s.devices),
      gateways_(s.gateways),
      assigned_(s.devices, 0),
      truth_{engines_, assigned_, t} {
  for (std::uint32_t d = 0; d < s.devices; ++d) {
    engines_.push_back(std::make_unique<engine>(s.each, t, jobs_));
    devices_[d].name = random_();
    devices_[d].by_gateway.resize(s.gateways);
  }
  truth_.engines = engines_;
  for (auto& g : gateways_) {
    for (std::uint32_t d = 0; d < s.devices; ++d) g.places.emplace_back(s.each.batch, core::queue_settings());
    g.own.resize(s.devices);
  }
  loads_.resize(s.devices);
  // A hop over the bus: 0.1 ms, and what a lognormal with a median of 0.15 ms adds.
  std::lognormal_distribution<double> added(std::log(0.15e6), 0.6);
  for (auto& h : hops_) h = 100'000 + std::min(static_cast<nanos>(added(random_)), longest_hop - 200'000);
  draw_arrivals();
}

core::result<void> cell::choose_policy() {
  auto all = make_policies(settings_.policy, settings_.gateways, settings_.devices, truth_, settings_.seed);
  if (!all) return all.error();
  policies_ = std::move(*all);
  return {};
}

nanos cell::hop() { return hops_[random_() % hops_.size()]; }

// As many copies of the trace as come nearest to the rate, each from another moment on; what is missing is
// made up by the clock of the trace.
void cell::draw_arrivals() {
  const double of_trace = static_cast<double>(trace_.requests.size()) / trace_.length_s;
  const auto copies = std::max(1.0, std::round(settings_.requests_per_s / of_trace));
  const double speed = settings_.requests_per_s / (copies * of_trace);
  std::uniform_real_distribution<double> anywhere(0, trace_.length_s);
  const double length = trace_.length_s / speed;
  for (std::uint32_t c = 0; c < static_cast<std::uint32_t>(copies); ++c) {
    const double from = anywhere(random_);
    for (std::uint32_t r = 0; r < trace_.requests.size(); ++r) {
      double at = (trace_.requests[r].at_s - from) / speed;
      for (; at < 0;) at += length;
      if (at < settings_.seconds) arrivals_.push_back({of_seconds(at), r, c});
    }
  }
  std::ranges::sort(arrivals_, {}, [](const arrival& a) { return std::tuple(a.at, a.copy, a.request); });
}

figures cell::run() {
  for (std::uint32_t d = 0; d < settings_.devices; ++d) {
    post(kind::board, d, static_cast<nanos>(random_() % board_every));
    if (policies_[0]->asks_landmarks())
      post(kind::landmarks, d, static_cast<nanos>(random_() % landmarks_every));
  }
  bool warm = true;
  for (std::size_t next = 0;;) {
    const nanos arrives = next < arrivals_.size() ? arrivals_[next].at : end_;
    const bool is_event = !events_.empty() && events_.top().at <= arrives;
    now_ = is_event ? events_.top().at : arrives;
    if (warm && now_ >= warm_) {
      warm = false;
      for (std::uint32_t d = 0; d < settings_.devices; ++d) devices_[d].busy_before = engines_[d]->busy();
    }
    if (now_ >= end_) break;
    if (!is_event) {
      arrive(arrivals_[next++]);
      continue;
    }
    const event e = events_.top();
    events_.pop();
    handle(e);
  }
  out_.seconds = static_cast<double>(end_ - warm_) / 1e9;
  for (std::uint32_t d = 0; d < settings_.devices; ++d)
    out_.busy_s.push_back(static_cast<double>(engines_[d]->busy() - devices_[d].busy_before) / 1e9);
  return std::move(out_);
}

void cell::handle(const event& e) {
  switch (e.what) {
    case kind::offer:
      return offer(e.which);
    case kind::step:
      return engines_[e.which]->next() == e.at ? step(e.which) : void();  // it was cut short
    case kind::first:
      return first_token(e.which);
    case kind::over:
      return over(e.which);
    case kind::refused:
      return refused(e.which);
    case kind::board: {
      const auto jitter = static_cast<nanos>(random_() % (board_every / 25));
      post(kind::board, e.which, now_ + board_every + jitter);
      return tell_board(e.which);
    }
    case kind::board_heard:
      return hear_board(e.which);
    case kind::landmarks:
      return tell_landmarks(e.which);
    case kind::landmarks_heard:
      return landmarks_.take(e.which, devices_[e.which].news);
  }
}

std::uint32_t cell::new_job() {
  if (free_.empty()) {
    jobs_.emplace_back();
    return static_cast<std::uint32_t>(jobs_.size() - 1);
  }
  const auto index = free_.back();
  free_.pop_back();
  return index;
}

void cell::arrive(const arrival& a) {
  const auto index = new_job();
  auto& j = jobs_[index];
  const auto& r = trace_.requests[a.request];
  j.request = a.request;
  j.key = key_of(j.copy = a.copy);
  j.input = r.input, j.output = r.output;
  j.gateway = static_cast<std::uint32_t>(random_() % settings_.gateways);
  j.tries = 0;
  j.came = now_;
  j.found = 0;
  j.refused_at = ~std::uint64_t{0};
  if (counts(j)) {
    ++out_.requests;
    if (out_.jobs.empty()) out_.jobs.resize(settings_.devices), out_.tokens.resize(settings_.devices);
  }
  ask(index);
}

// What arrival.cpp does: the places in the order of the policy, until the gateway's admission of one has
// room.
void cell::ask(std::uint32_t index) {
  auto& j = jobs_[index];
  auto& g = gateways_[j.gateway];
  look(j.gateway, j);
  const auto first = trace_.name_of(j.request, j.key, 0).lo;
  policies_[j.gateway]->choose({j, loads_, g.own, first}, choice_);
  for (const auto d : choice_) {
    if (!g.places[d].admit(model, j.input)) continue;
    j.device = d;
    ++g.own[d], ++assigned_[d];
    if (counts(j)) out_.promised += loads_[d].known;
    return post(kind::offer, index, now_ + hop());
  }
  if (counts(j)) ++out_.refused;
  free_.push_back(index);
}

void cell::look(std::uint32_t gateway, const job& j) {
  for (std::uint32_t d = 0; d < settings_.devices; ++d)
    loads_[d] = gateways_[gateway].places[d].load(devices_[d].name, 0);
  if (!trace_.has_prefixes() || !policies_[gateway]->asks_landmarks()) return;
  names_.clear();
  for (std::uint32_t depth = 1; depth <= j.input / core::page_tokens; depth *= 2)
    names_.push_back(trace_.name_of(j.request, j.key, depth - 1).hi);
  landmarks_.look(names_, j.input - 1, loads_);
}

void cell::offer(std::uint32_t index) {
  auto& j = jobs_[index];
  auto& e = *engines_[j.device];
  if (!e.admission.admit(model, j.input)) return post(kind::refused, index, now_ + hop());
  ++devices_[j.device].by_gateway[j.gateway];
  const auto before = e.next();
  e.submit(index, now_);
  if (now_ - devices_[j.device].told_at >= settings_.board_after_job) tell_board(j.device);
  if (e.next() != before) post(kind::step, j.device, e.next());
}

void cell::refused(std::uint32_t index) {
  auto& j = jobs_[index];
  auto& g = gateways_[j.gateway];
  g.places[j.device].prompt_done(j.input);
  g.places[j.device].job_done(0);
  --g.own[j.device], --assigned_[j.device];
  if (counts(j)) ++out_.refused_by_worker;
  if (++j.tries < most_tries) return ask(index);
  if (counts(j)) ++out_.refused;
  free_.push_back(index);
}

void cell::step(std::uint32_t device) {
  auto& e = *engines_[device];
  e.step(now_);
  for (const auto i : e.firsts()) post(kind::first, i, now_ + hop());
  for (const auto i : e.ended()) {
    --devices_[device].by_gateway[jobs_[i].gateway];
    post(kind::over, i, now_ + longest_hop);  // behind the frames before it
  }
  if (e.next() != engine::no_step) post(kind::step, device, e.next());
}

void cell::first_token(std::uint32_t index) {
  auto& j = jobs_[index];
  j.first = now_;
  gateways_[j.gateway].places[j.device].prompt_done(j.input);
  if (counts(j)) {
    out_.first_ms.push_back(static_cast<float>(static_cast<double>(now_ - j.came) / 1e6));
    out_.prompt_tokens += j.input;
    out_.found += j.found;
    out_.jobs[j.device] += 1;
    out_.tokens[j.device] += j.input - j.found + j.output;
  }
}

void cell::over(std::uint32_t index) {
  auto& j = jobs_[index];
  auto& g = gateways_[j.gateway];
  g.places[j.device].job_done(j.output);
  --g.own[j.device], --assigned_[j.device];
  if (counts(j)) {
    ++out_.ended;
    if (j.output > 1)
      out_.gap_ms.push_back(static_cast<float>(static_cast<double>(now_ - j.first) / 1e6 / (j.output - 1)));
  }
  free_.push_back(index);
}

void cell::tell_board(std::uint32_t d) {
  auto& w = devices_[d];
  actors::fleet::write_numbers(engines_[d]->admission, w.board);
  w.board_shares = w.by_gateway;
  w.told_at = now_;
  post(kind::board_heard, d, now_ + hop());
}

void cell::hear_board(std::uint32_t d) {
  const auto& w = devices_[d];
  for (std::uint32_t g = 0; g < settings_.gateways; ++g)
    actors::fleet::take_numbers(w.board, w.board_shares[g], gateways_[g].places[d]);
}

// The owner lists landmarks once a second; the intake finds them at its next board.
void cell::tell_landmarks(std::uint32_t d) {
  post(kind::landmarks, d, now_ + landmarks_every);
  auto& w = devices_[d];
  const auto& tree = engines_[d]->pool().names();
  if (w.landmarks_seen == tree.landmark_changes()) return;
  w.landmarks_seen = tree.landmark_changes();
  core::fleet::landmark_list now;
  now.reserve(tree.landmarks().size());
  for (const auto& l : tree.landmarks()) now.push_back(l.name);
  now = core::fleet::sorted_landmarks(std::move(now));
  w.news = core::fleet::change_of(w.told, now);
  w.told = std::move(now);
  post(kind::landmarks_heard, d, now_ + static_cast<nanos>(random_() % board_every) + hop());
}

}  // namespace weir::bench::fleet
