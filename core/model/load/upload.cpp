// upload_slices(). A lane is a buffer in host memory that the device can read. Each slice is read into a lane
// and uploaded from it, while readers fill other lanes.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>

#include "core/model/load/fill.h"
#include "kernels/host_buffer.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

struct slice {
  piece from;
  kernels::dtype type = kernels::dtype::f32;
  u64 first = 0, count = 0;  // elements
  std::byte* to = nullptr;   // null where the backend packs the slice
  kernels::matrix packed{};  // the whole matrix then, in the backend's layout
  std::uint32_t row = 0;     // of `packed`, the slice's first
  tensor_part part{};        // of a tensor that is converted; otherwise without rows

  u64 bytes() const { return kernels::bytes_of(type, count); }   // of its elements
  u64 room() const { return part.rows ? part.bytes : bytes(); }  // in a lane
};

// Slices of whole rows, and parts of converted tensors, all of which the backend packs.
void add_packed(const placed& p, u64 lane, std::vector<slice>& out) {
  slice s;
  s.type = p.rows.type;
  s.packed = p.rows;
  s.packed.data = p.to;
  s.packed.order = kernels::layout::packed;
  const u64 cols = p.rows.cols, most = std::max<u64>(1, lane / kernels::bytes_of(s.type, cols));
  std::uint32_t row = 0;
  for (const piece& q : p.pieces) {
    const auto rows = static_cast<std::uint32_t>(q.elements / cols);
    s.from = q;
    s.part = {};
    if (q.from->made_by) {
      for (const tensor_part& part : q.from->made_by->parts(rows, lane)) {
        s.part = part;
        s.count = u64{part.rows} * part.columns;
        s.row = row + part.row;
        out.push_back(s);
      }
    } else {
      for (u64 at = 0; at < rows; at += most) {
        s.first = at * cols;
        s.count = std::min(most, rows - at) * cols;
        s.row = row + static_cast<std::uint32_t>(at);
        out.push_back(s);
      }
    }
    row += rows;
  }
}

std::vector<slice> slices_of(const std::vector<placed>& all, u64 lane) {
  std::vector<slice> out;
  for (const placed& p : all) {
    if (!kernels::is_plain(p.rows.type)) {
      add_packed(p, lane, out);
      continue;
    }
    std::byte* to = p.to;
    const u64 wide = kernels::size_of(p.rows.type), most = lane / wide;
    for (const piece& q : p.pieces) {
      for (u64 at = 0; at < q.elements; at += most)
        out.push_back({q, p.rows.type, at, std::min(most, q.elements - at), to + at * wide});
      to += q.elements * wide;
    }
  }
  return out;
}

// A lane's memory, and what its slice has in it where that is a part of a converted tensor.
struct lane_memory {
  std::span<std::byte> bytes;
  kernels::file_codes codes;
};

result<void> fill_lane(const checkpoint& from, const slice& s, lane_memory& to) {
  if (s.part.rows == 0) return read_some(from, s.from, s.type, s.first, s.count, to.bytes.data());
  auto codes = s.from.from->made_by->read_part(from, s.part, to.bytes);
  if (!codes) return codes.error();
  to.codes = *codes;
  return {};
}

void begin(const kernels::backend& on, const slice& s, const lane_memory& from, unsigned lane) {
  const std::byte* bytes = from.bytes.data();
  if (s.to) return on.do_begin_upload(on.self, s.to, bytes, s.bytes(), lane);
  kernels::packed_part part{s.row, {}, nullptr};
  if (s.part.rows)
    part.codes = &from.codes;
  else
    part.rows = {bytes, s.type, static_cast<std::uint32_t>(s.count / s.packed.cols), s.packed.cols};
  on.do_begin_pack(on.self, s.packed, part, lane);
}

// The queues between the readers and the caller. Only the caller uses the device.
//
// Thread safety: any thread; every member takes the lock.
class exchange {
 public:
  exchange(std::size_t slices, unsigned lanes) : slices_(slices) {
    for (unsigned i = 0; i < lanes; ++i) free_.push_back(i);
  }

  struct task {
    std::size_t slice;
    unsigned lane;
  };

  // For readers: waits for a free lane, and returns it with the next slice. nullopt: no slice is left, or a
  // reader has failed.
  std::optional<task> next() {
    std::unique_lock hold(lock_);
    changed_.wait(hold, [&] { return failed_ || next_ == slices_ || !free_.empty(); });
    if (failed_ || next_ == slices_) return std::nullopt;
    const task t{next_++, free_.front()};
    free_.pop_front();
    return t;
  }
  void filled(task t) {
    std::lock_guard hold(lock_);
    full_.push_back(t);
    changed_.notify_all();
  }
  void fail(error e) {
    std::lock_guard hold(lock_);
    if (!failed_) failed_ = std::move(e);
    changed_.notify_all();
  }
  void give_back(unsigned lane) {
    std::lock_guard hold(lock_);
    free_.push_back(lane);
    changed_.notify_all();
  }

  // For the caller: a lane that was filled. nullopt: there is none yet, or a reader has failed. `wait`: waits
  // until there is one or a reader has failed.
  std::optional<task> take(bool wait) {
    std::unique_lock hold(lock_);
    if (wait) changed_.wait(hold, [&] { return failed_ || !full_.empty(); });
    if (failed_ || full_.empty()) return std::nullopt;
    const task t = full_.front();
    full_.pop_front();
    return t;
  }
  std::optional<error> failure() {
    std::lock_guard hold(lock_);
    return failed_;
  }

 private:
  const std::size_t slices_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  std::deque<unsigned> free_;
  std::deque<task> full_;
  std::optional<error> failed_;
};

// A thread reads about 5 GB/s from the page cache, and the link to a device carries 55 GB/s. Half of the
// cores read, but at most eight: what more readers gain is lost by pinning their memory
// (docs/measurements/gpu.md, «Loading»).
unsigned reader_count() { return std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u); }

}  // namespace

result<void> upload_slices(const std::vector<placed>& all, const checkpoint& from,
                           const std::shared_ptr<const kernels::backend>& on, const moved_bytes& moved,
                           unsigned readers, u64 lane) {
  if (readers == 0) readers = reader_count();
  const auto slices = slices_of(all, lane);
  // A lane holds the largest slice: that of one row, or of a few, may be longer than asked for.
  for (const slice& s : slices) {
    if (!s.to && s.room() > kernels::backend::most_packed_at_once)
      return make_error(errc::not_supported,
                        "a matrix with rows of {} columns is not supported yet: a part of it takes {} bytes, "
                        "and a device packs at most {} at once",
                        s.packed.cols, s.room(), kernels::backend::most_packed_at_once);
    lane = std::max(lane, (s.room() + 255) / 256 * 256);
  }
  const unsigned lanes = std::min(2 * readers, kernels::backend::upload_lanes);
  const kernels::host_buffer memory(on, lanes * lane);
  if (!memory.data())
    return make_error(errc::does_not_fit, "no host memory that the device can reach: {} bytes", lanes * lane);
  std::vector<lane_memory> at(lanes);
  for (unsigned i = 0; i < lanes; ++i) at[i].bytes = {memory.data() + i * lane, lane};

  exchange slots(slices.size(), lanes);
  std::vector<std::jthread> threads;
  const auto read = [&] {
    while (const auto t = slots.next()) {
      if (auto ok = fill_lane(from, slices[t->slice], at[t->lane]); !ok) return slots.fail(ok.error());
      slots.filled(*t);
    }
  };
  try {
    for (unsigned i = 0; i < readers; ++i) threads.emplace_back(read);
  } catch (const std::system_error& e) {  // the threads that did start suffice
    if (threads.empty()) return make_error(errc::internal, "no thread to read weights with: {}", e.what());
  }

  std::deque<unsigned> under_way;
  const auto await_first = [&] {
    on->do_await_upload(on->self, under_way.front());
    slots.give_back(under_way.front());
    under_way.pop_front();
  };
  for (std::size_t begun = 0; begun < slices.size();) {
    const auto t = slots.take(under_way.empty());
    if (t) {
      const slice& s = slices[t->slice];
      begin(*on, s, at[t->lane], t->lane);
      under_way.push_back(t->lane);
      moved(s.bytes());
      ++begun;
    } else if (!under_way.empty()) {
      await_first();
    } else {
      break;  // a reader has failed
    }
  }
  while (!under_way.empty()) await_first();
  threads.clear();
  if (const auto why = slots.failure()) return *why;
  if (const char* why = on->fault ? on->fault(on->self) : nullptr)
    return make_error(errc::internal, "the device failed: {}", why);
  return {};
}

}  // namespace weir::core
