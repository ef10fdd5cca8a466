// Work on texts without a job: tokenize, count_tokens, detokenize, and parsing and destroying long ones.
#include "actors/counted_text.h"
#include "actors/make_job.h"
#include "actors/service_parts.h"

namespace weir::actors {
void service::tokenize(std::string model, std::string text, bool add_special, executor ex,
                       std::function<void(core::result<tokenized>)> done, const text_client& from) {
  using answer = core::result<tokenized>;
  struct held_text {
    std::string text;
    core::memory_hold memory;
  };
  const auto held = std::make_shared<held_text>(held_text{std::move(text), core::memory_hold(p_->memory)});
  const auto counted = std::make_shared<counted_text>(from.accounts, p_->time);
  text_pool::task work;
  work.key = from.key;
  work.bytes = held->text.size();
  if (!held->memory.resize(work.bytes)) return post_call(ex, done, answer(no_memory_for_clients()));
  work.run = [counted, p = p_.get(), model = std::move(model), held, add_special, ex, done](core::turn& at) {
    const auto m = p->list.find_texts(model);
    if (!m) return post_call(ex, done, answer(m.error()));
    tokenized t{{}, (*m)->tokenizer, core::memory_hold(p->memory)};
    t.ids = t.tokenizer->encode(held->text, {.add_special = add_special, .parse_special = true, .at = &at});
    if (!at.go_on()) return post_call(ex, done, answer(unwanted()));
    t.ids.shrink_to_fit();
    counted->used(t.ids.size());
    if (!t.memory.resize(t.ids.size() * sizeof(core::token_id)))
      return post_call(ex, done, answer(no_memory_for_clients()));
    post_call(ex, done, answer(std::move(t)));
  };
  work.refuse = [ex, done](core::error why) { post_call(ex, done, answer(std::move(why))); };
  p_->pool.post(std::move(work));
}

void service::count_tokens(request r, executor ex, std::function<void(core::result<std::uint32_t>)> done,
                           const text_client& from) {
  using count = core::result<std::uint32_t>;
  if (auto known = take_preset(r, p_->presets); !known) return post_call(ex, done, count(known.error()));
  struct held_request {
    request asked;
    core::memory_hold memory;
    counted_text counted;
    held_request(request r, std::shared_ptr<core::memory_account> of, const job_accounts& by,
                 const core::clock& time)
        : asked(std::move(r)), memory(std::move(of)), counted(by, time) {}
  };
  auto held = std::make_shared<held_request>(std::move(r), p_->memory, from.accounts, p_->time);
  text_pool::task work;
  work.key = from.key;
  work.bytes = held->asked.bytes ? *held->asked.bytes : input_bytes(held->asked);
  const bool is_long = work.bytes > longest_text_here;
  if (!held->memory.resize(work.bytes)) {
    post_call(ex, done, count(no_memory_for_clients()));
    if (is_long) p_->pool.drop(std::move(held));
    return;
  }
  work.run = [p = p_.get(), held, ex, done](core::turn& at) {
    const auto m = p->list.find_texts(held->asked.model);
    if (!m) return post_call(ex, done, count(m.error()));
    const auto prompt = prompt_of(held->asked, {}, **m, at);
    if (!prompt) return post_call(ex, done, count(prompt.error()));
    held->counted.used(prompt->size());
    post_call(ex, done, count(static_cast<std::uint32_t>(prompt->size())));
  };
  work.refuse = [ex, done](core::error why) { post_call(ex, done, count(std::move(why))); };
  p_->pool.post(std::move(work));
  if (is_long) p_->pool.drop(std::move(held));
}

void service::detokenize(std::string model, std::vector<std::int64_t> ids, executor ex,
                         std::function<void(core::result<detokenized>)> done, const text_client& from) {
  using answer = core::result<detokenized>;
  struct held_ids {
    std::vector<std::int64_t> ids;
    core::memory_hold memory;
  };
  const auto held = std::make_shared<held_ids>(held_ids{std::move(ids), core::memory_hold(p_->memory)});
  const auto counted = std::make_shared<counted_text>(from.accounts, p_->time);
  text_pool::task work;
  work.key = from.key;
  work.bytes = held->ids.size() * sizeof(std::int64_t);
  if (!held->memory.resize(work.bytes)) return post_call(ex, done, answer(no_memory_for_clients()));
  work.run = [counted, p = p_.get(), model = std::move(model), held, ex, done](core::turn&) {
    counted->used(held->ids.size());
    const auto m = p->list.find_texts(model);
    if (!m) return post_call(ex, done, answer(m.error()));
    const auto& t = *(*m)->tokenizer;
    std::vector<core::token_id> known;
    for (auto id : held->ids) {
      if (id < 0 || id >= t.vocab_size())
        return post_call(ex, done,
                         answer(core::bad_param("ids", "ids: {} is outside the vocabulary (0 to {})", id,
                                                t.vocab_size() - 1)));
      known.push_back(static_cast<core::token_id>(id));
    }
    detokenized out{t.decode(known, {.skip_special = false, .clean_up_spaces = t.clean_up_spaces()}),
                    core::memory_hold(p->memory)};
    if (!out.memory.resize(out.text.capacity())) return post_call(ex, done, answer(no_memory_for_clients()));
    post_call(ex, done, answer(std::move(out)));
  };
  work.refuse = [ex, done](core::error why) { post_call(ex, done, answer(std::move(why))); };
  p_->pool.post(std::move(work));
}

void service::work_on_text(std::uint64_t key, std::uint64_t bytes, std::function<void()> work, executor ex,
                           std::function<void(std::optional<core::error>)> done) {
  p_->work_in(p_->pool, {.key = key, .bytes = bytes}, std::move(work), std::move(ex), std::move(done));
}

// Constraints may wait for it, but no text does.
void service::parts::read_files(std::function<void()> work, executor ex,
                                std::function<void(std::optional<core::error>)> done) {
  work_in(constraint_pool, {}, std::move(work), std::move(ex), std::move(done));
}

void service::parts::work_in(text_pool& pool, text_pool::task t, std::function<void()> work, executor ex,
                             std::function<void(std::optional<core::error>)> done) {
  using refusal = std::optional<core::error>;
  t.run = [work = std::move(work), ex, done](core::turn&) {
    work();
    post_call(ex, done, refusal());
  };
  t.refuse = [ex, done](core::error why) { post_call(ex, done, refusal(std::move(why))); };
  pool.post(std::move(t));
}

void service::drop(std::shared_ptr<const void> what) noexcept { p_->pool.drop(std::move(what)); }

}  // namespace weir::actors
