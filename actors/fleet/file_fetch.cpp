#include "actors/fleet/file_fetch.h"

#include <algorithm>

namespace weir::actors::fleet {

namespace wire = core::fleet;
using core::errc;

namespace {

constexpr unsigned most_in_vain = 3;  // questions for a piece, before the worker is left

}  // namespace

std::optional<file_fetch::question> file_fetch::next(const std::vector<std::string>& workers) {
  if (!worker_.empty() && std::ranges::find(workers, worker_) == workers.end()) lose_worker();
  if (worker_.empty()) {
    const auto fresh = std::ranges::find_if(workers, [&](const auto& w) { return !tried_.contains(w); });
    if (fresh == workers.end()) return std::nullopt;
    worker_ = *fresh;
  }
  return question{worker_, {digest_, file_, coming_.size()}};
}

bool file_fetch::take(const std::optional<wire::file_part>& part) {
  if (worker_.empty()) return false;
  if (!part || part->digest != digest_ || part->file != file_ || part->at != coming_.size()) {
    if (++in_vain_ >= most_in_vain)
      leave_worker(core::make_error(errc::unavailable, "the worker {} does not answer", worker_));
    return false;
  }
  in_vain_ = 0;
  const std::uint64_t most = list_ ? size_of_file() : wire::longest_file_list;
  if (!part->there || part->bytes.size() > most - coming_.size() ||
      (part->bytes.empty() && (!list_ || coming_.size() < most))) {
    leave_worker(core::make_error(errc::unavailable, "the worker {} has no files of the digest on its board",
                                  worker_));
    return false;
  }
  coming_ += part->bytes;
  sum_.add(part->bytes);
  return end_file();
}

// The list has no length of its own: it is whole once it has its digest, and a piece of it is asked for until
// it does.
bool file_fetch::end_file() {
  if (!list_) {
    if (sha256_of(coming_) != digest_) return false;
    auto list = wire::read_file_list(coming_);
    if (!list) {
      leave_worker(list.error());
      return false;
    }
    list_ = std::move(*list);
  } else {
    if (coming_.size() < size_of_file()) return false;
    if (sum_.take() != list_->files[file_ - 1].sum) {
      leave_worker(core::make_error(errc::bad_file, "{} of the worker {} is not what its digest says",
                                    list_->files[file_ - 1].name, worker_));
      return false;
    }
    contents_.push_back(std::move(coming_));
  }
  ++file_;
  coming_.clear();
  sum_.take();
  return file_ > list_->files.size();
}

void file_fetch::lose_worker() {
  if (!worker_.empty()) leave_worker(core::make_error(errc::unavailable, "the worker {} is gone", worker_));
}

// The file that was under way is begun again at the next one.
void file_fetch::leave_worker(core::error why) {
  trouble_ = std::move(why);
  tried_.insert(std::exchange(worker_, {}));
  in_vain_ = 0;
  coming_.clear();
  sum_.take();
}

}  // namespace weir::actors::fleet
