#include "core/model/decoder_model.h"

#include <cassert>

#include "core/sample/steps.h"

namespace weir::core {
namespace {

std::unique_ptr<kernels::decoder> make_whole(const model_config& c, const model_weights& w,
                                             const kernels::backend& on, kv_choice kv) {
  return on.make_decoder ? on.make_decoder(on.self, decoder_shape_of(c, w, kv)) : nullptr;
}

// Why nothing was drawn from a row: it is not sound, or what the job asks for leaves nothing of it.
drawn no_token(std::span<const float> row) {
  const bool fine = sound(row);
  return {.fault = !fine, .nothing_left = fine};
}

}  // namespace

decoder_model::decoder_model(model_config config, std::vector<token_id> stop_ids, model_weights weights,
                             std::shared_ptr<const kernels::backend> backend, kv_choice kv)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      backend_(std::move(backend)),
      embed_factor_(embed_factor(config_, weights_)),
      kv_(kv.value_or(kernels::kv_type::f32)),
      scratch_(config_.shape.vocab),
      whole_(make_whole(config_, weights_, *backend_, kv)),
      pool_(backend_, parts_of(config_.shape, kv_, whole_.get())) {
  info_.architecture = config_.architecture;
  info_.vocab_size = config_.shape.vocab;
  info_.context = config_.context;
  info_.stop_ids = std::move(stop_ids);
  info_.weight_bytes = weights_.memory.size();
  info_.runs_ahead = whole_ != nullptr;
  if (whole_) info_.prompt_rows = whole_->prompt_rows();
  info_.page_bytes = whole_ ? whole_->page_bytes() : page_bytes(config_.shape, kv_);
  info_.pool = pool_.steps();
  info_.kv_type = whole_ ? whole_->kv_type() : kernels::name(kv_);
}

// All weights without the embedding, of which a step reads one row for each token. If the embedding is also
// the head, all weights.
std::span<const std::byte> decoder_model::weights_of_a_step() const noexcept {
  return std::span<const std::byte>(weights_.memory.data(), weights_.memory.size())
      .subspan(weights_.read_by_steps);
}

result<void> decoder_model::warm_up(std::uint32_t max_batch, std::uint32_t prompt_rows) {
  if (auto ok = check_awake(); !ok) return ok;
  const std::uint32_t rows = max_batch + prompt_rows;
  if (!whole_) return make_room(rows, max_batch) ? result<void>() : no_room(rows, errc::does_not_fit);
  const std::uint32_t longest = pages_for(info_.context);
  if (!whole_->warm_up(max_batch, prompt_rows, longest)) return refusal(errc::does_not_fit);
  // Loads the kernel that copies pages: only now, when the decoder knows that there is memory for code.
  const page_copy nowhere{0, 0};
  copy_pages({&nowhere, 1});
  return device_state();
}

result<void> decoder_model::forward(const batch& b) {
  if (rest_ != rest::awake) return check_awake();
  const auto rows = static_cast<std::uint32_t>(b.tokens.size());
  if (whole_) {
    copy_pages(b.copies);
    place(b);
    logits_rows_ = b.logits_rows;
    if (!whole_->forward({b.tokens, positions_, slices_, logits_from_})) return refusal(errc::unavailable);
    return {};
  }
  if (!make_room(rows, b.logits_rows)) return no_room(rows, errc::unavailable);
  copy_pages(b.copies);
  place(b);
  backend_->begin_step(backend_->self);
  embed(b);
  for (std::uint32_t layer = 0; layer < config_.layers(); ++layer) {
    attend(layer, rows);
    feed_forward(layer, rows);
  }
  compute_logits(b.logits_rows);
  backend_->end_step(backend_->self);
  return device_state();
}

result<void> decoder_model::device_state() const {
  if (const char* why = backend_->fault ? backend_->fault(backend_->self) : nullptr)
    return make_error(errc::internal, "the device failed: {}", why);
  return {};
}

// `code`: does_not_fit while the model is loaded; later it is the server's fault and no request's.
result<void> decoder_model::no_room(std::uint32_t rows, errc code) const {
  return make_error(code, "no memory for the activations of {} rows, {} bytes are free", rows,
                    backend_->free_bytes(backend_->self));
}

// Why the decoder returned false: the device failed, or memory is short.
result<void> decoder_model::refusal(errc code) const {
  if (auto ok = device_state(); !ok) return ok;
  return make_error(code, "no memory for what a step computes in, {} bytes are free",
                    backend_->free_bytes(backend_->self));
}

void decoder_model::place(const batch& b) {
  positions_.resize(b.tokens.size());
  slices_.resize(b.slices.size());
  logits_from_.resize(b.logits_rows);
  std::uint32_t* position = positions_.data();
  kernels::kv_slice* slice = slices_.data();
  for (const batch_slice& s : b.slices) {
    assert(position == positions_.data() + s.first_row && s.rows >= 1);
    for (std::uint32_t i = 0; i < s.rows; ++i) *position++ = s.position + i;
    slice->first_row = s.first_row;
    slice->rows = s.rows;
    slice->position = s.position;
    slice->pages = s.pages.data();
    ++slice;
    if (s.logits_row >= 0)
      logits_from_[static_cast<std::size_t>(s.logits_row)] =
          static_cast<std::int32_t>(s.first_row + s.rows - 1);
    for (std::uint32_t i = 0; i < s.scored; ++i)
      logits_from_[s.scored_logits + i] = static_cast<std::int32_t>(s.first_row + s.first_scored + i);
  }
  assert(position == positions_.data() + positions_.size());
}

// Buffers grow and never shrink: rows behind those of the step are left over from a larger step.
bool decoder_model::make_room(std::size_t rows, std::size_t logits_rows) {
  const auto grow = [&](kernels::buffer& b, std::size_t elements) {
    if (b.size() >= elements * sizeof(float)) return true;
    b = {};  // first, so that the old buffer and the new one need not fit together
    b = kernels::buffer(backend_, elements * sizeof(float));
    return b.data() != nullptr;
  };
  const auto sizes = activations_of(config_.shape, rows, logits_rows);
  if (!backend_->on_host && read_back_.size() < sizes.back()) read_back_.resize(sizes.back());
  kernels::buffer* const all[] = {&x_,     &normed_,  &angles_, &qkv_,    &attended_, &gate_up_,
                                  &inner_, &experts_, &made_,   &branch_, &logits_};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!grow(*all[i], sizes[i])) return false;
  return true;
}

std::uint64_t decoder_model::activation_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const kernels::buffer* b : {&x_, &normed_, &angles_, &qkv_, &attended_, &gate_up_, &inner_, &experts_,
                                   &made_, &branch_, &logits_})
    sum += b->size();
  return sum;
}

result<void> decoder_model::begin_draws(std::span<const draw> draws) {
  assert(whole_);
  return draws_.begin(*whole_, draws) ? result<void>() : refusal(errc::unavailable);
}

bool decoder_model::computing() const { return whole_ && whole_->computing(); }

result<void> decoder_model::collect(std::span<drawn> out) {
  return draws_.collect(*whole_, out) ? result<void>() : device_state();
}

void decoder_model::set_company(bool others) {
  if (whole_) whole_->set_company(others);
}

std::optional<duration> decoder_model::device_time() const {
  const auto ns = whole_ ? whole_->device_ns() : std::nullopt;
  return ns ? std::optional(duration(static_cast<std::int64_t>(*ns))) : std::nullopt;
}

result<void> decoder_model::sample(std::span<const draw> draws, std::span<drawn> out) {
  if (whole_) {
    if (auto begun = begin_draws(draws); !begun) return begun;
    return collect(out);
  }
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const draw& d = draws[i];
    const std::span<const float> row = logits(d.logits_row);
    const auto id = d.from->pick(row, d.position, scratch_, d.allowed);
    out[i] = id ? drawn{.id = *id, .surprise = scratch_.surprise} : no_token(row);
    if (d.top_logprobs < 0 || !id) continue;
    if (logprobs_.size() < draws.size()) logprobs_.resize(draws.size());
    compute_logprobs(row, *id, static_cast<std::uint32_t>(d.top_logprobs), scratch_, logprobs_[i]);
  }
  return {};
}

const kernels::draw_logprobs& decoder_model::logprobs_of(std::uint32_t i) const {
  return whole_ ? whole_->logprobs_of(i) : logprobs_[i];
}

std::span<const float> decoder_model::logits(std::uint32_t row) const {
  assert(row < logits_rows_);
  if (whole_) {
    read_back_.resize(config_.shape.vocab);
    if (!whole_->read_logits(row, read_back_.data())) return {};
    return read_back_;
  }
  const float* all = backend_->on_host ? logits_.floats() : read_back_.data();
  return {all + std::size_t{row} * config_.shape.vocab, config_.shape.vocab};
}

}  // namespace weir::core
