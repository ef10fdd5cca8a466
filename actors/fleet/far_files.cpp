// How a gateway that has no files of a model gets them from a worker, and the model appears in its list.
#include <boost/asio/post.hpp>

#include "actors/fleet/far_owner.h"
#include "actors/fleet/text_files.h"
#include "core/insist.h"
#include "core/visible.h"

namespace weir::actors::fleet {

namespace asio = boost::asio;
namespace wire = core::fleet;

namespace {

constexpr core::duration whole_within = std::chrono::minutes(2);
constexpr core::duration again_after = std::chrono::seconds(30);  // a fetch that failed
constexpr core::duration piece_within = std::chrono::seconds(1);
constexpr std::size_t most_fetched = 64;  // models
constexpr std::size_t most_failed = 1024;

}  // namespace

// One model at a time.
void far_owner::look_after_files() {
  if (!options_.fetch || bus_.state() != bus::link::up) return;
  const auto now = time_.now();
  if (fetch_ && now - fetch_->began() > whole_within)
    return end_fetch(core::make_error(core::errc::unavailable, "it takes too long"));
  if (fetch_ || opening_ || now_.fetched >= most_fetched) return;
  std::erase_if(fetch_failed_, [&](const auto& f) { return now - f.second > again_after; });
  for (const auto& [model, digest] : view_.wanted_files()) {
    if (fetch_failed_.contains(model)) continue;
    const auto sum = wire::parse_digest(digest);
    if (!sum) continue;
    fetch_.emplace(model, *sum, now);
    return ask_for_files();
  }
}

void far_owner::ask_for_files() {
  const auto q = fetch_->next(view_.workers_with(fetch_->model(), wire::digest_text(fetch_->digest())));
  if (!q) {
    const auto& why = fetch_->trouble();
    return end_fetch(why ? *why : core::make_error(core::errc::unavailable, "no worker has them any more"));
  }
  bus_.ask(subjects_.control_of(q->worker), wire::frame_of(q->what), piece_within, ex_,
           [weak = weak_from_this(), fetch = ++fetch_question_](bus::answer a) {
             const auto self = weak.lock();
             if (self && !self->stopped_ && self->fetch_ && self->fetch_question_ == fetch) self->on_files(a);
           });
}

void far_owner::on_files(const bus::answer& a) {
  if (a.how == bus::answer::how::nobody_there) {
    fetch_->lose_worker();
    return ask_for_files();
  }
  const auto part = a.how == bus::answer::how::came ? wire::read_file_part(a.bytes) : std::nullopt;
  if (a.how == bus::answer::how::came && !part) ++now_.broken;
  if (!fetch_->take(part)) return ask_for_files();
  open_fetched();
}

void far_owner::end_fetch(const core::error& why) {
  const std::string model = fetch_->model();
  fetch_.reset();
  fail_fetch(model, why);
}

void far_owner::fail_fetch(const std::string& model, const core::error& why) {
  ++now_.fetch_failures;
  if (fetch_failed_.size() < most_failed) fetch_failed_[model] = time_.now();
  doors_.seen->tell("the fleet", fmt::format("the files of {} could not be had from a worker: {}",
                                             core::one_line(model), core::one_line(why.message)));
}

// A thread of the service's reads tokenizer and template, which may take seconds.
void far_owner::open_fetched() {
  const auto done = std::make_shared<file_fetch>(std::move(*fetch_));
  fetch_.reset();
  opening_ = true;
  const auto settle = [weak = weak_from_this(), ex = ex_, done](core::result<far_model> m) {
    core::insist([&] {
      asio::post(ex, [weak, done, m] {
        if (const auto self = weak.lock()) self->on_opened(*done, m);
      });
    });
  };
  doors_.constraints.post(
      {.key = 0,
       .bytes = 0,
       .run =
           [settle, done, o = *options_.fetch, time = doors_.lasting,
            compiled = doors_.compiled](core::turn&) {
             model_spec spec;
             spec.name = done->model();
             settle(open_listed_model(done->list(), done->contents(), std::move(spec), o, time, compiled));
           },
       .refuse = [settle](core::error why) { settle(std::move(why)); },
       .unwanted = {}});
}

void far_owner::on_opened(const file_fetch& what, const core::result<far_model>& m) {
  opening_ = false;
  if (stopped_) return;
  if (!m) return fail_fetch(what.model(), m.error());
  ++now_.fetched;
  view_.add(*m, wire::digest_text(what.digest()));
  if (options_.on_fetched) options_.on_fetched(what.model());
}

}  // namespace weir::actors::fleet
