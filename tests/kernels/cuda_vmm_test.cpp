// Virtual memory over a driver that fails at any call: an allocation has all of its memory or none, nothing
// is lost, and a shortage is no fault. No device is needed.
#ifdef WEIR_WITH_CUDA
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/vmm.h"

namespace weir::tests::cuda_vmm_test {

using namespace weir::kernels::cuda;

namespace {

constexpr std::uint64_t unit = 2u << 20, granule = virtual_memory::granule;

// What a driver has handed out. The call that `fails_in` counts down to answers `failure`.
struct fake_driver {
  std::map<CUdeviceptr, std::uint64_t> reserved, mapped;
  std::map<CUmemGenericAllocationHandle, std::uint64_t> handles;
  std::uint64_t next = 1, accessible = 0;
  int fails_in = -1;
  CUresult failure = CUDA_ERROR_OUT_OF_MEMORY;
  bool wrong = false;  // a call that no driver would take

  CUresult answer(bool right) {
    if (!right) wrong = true;
    return fails_in >= 0 && fails_in-- == 0 ? failure : CUDA_SUCCESS;
  }
  // Whether each byte of a range has memory, and its pieces end where it does.
  bool is_mapped(CUdeviceptr at, std::uint64_t n) const {
    const CUdeviceptr end = at + n;
    for (auto m = mapped.find(at); at < end && m != mapped.end() && m->first == at; ++m) at += m->second;
    return at == end;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [at, n] : mapped) sum += n;
    return sum;
  }
};
fake_driver* now = nullptr;

vmm_driver table() {
  vmm_driver t;
  t.error_name = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_OF_A_TEST";
    return CUDA_SUCCESS;
  };
  t.reserve = [](CUdeviceptr* at, std::size_t n, std::size_t, CUdeviceptr, unsigned long long) {
    if (const CUresult e = now->answer(n > 0 && n % unit == 0); e != CUDA_SUCCESS) return e;
    *at = now->next++ << 40;
    now->reserved[*at] = n;
    return CUDA_SUCCESS;
  };
  t.unreserve = [](CUdeviceptr at, std::size_t n) {
    const auto first = now->mapped.lower_bound(at);
    const bool empty = first == now->mapped.end() || first->first >= at + n;
    const bool known = now->reserved.contains(at) && now->reserved[at] == n;
    now->reserved.erase(at);
    return now->answer(known && empty);
  };
  t.create = [](CUmemGenericAllocationHandle* h, std::size_t n, const CUmemAllocationProp*,
                unsigned long long) {
    if (const CUresult e = now->answer(n > 0 && n <= granule && n % unit == 0); e != CUDA_SUCCESS) return e;
    *h = now->next++;
    now->handles[*h] = n;
    return CUDA_SUCCESS;
  };
  t.release = [](CUmemGenericAllocationHandle h) { return now->answer(now->handles.erase(h) == 1); };
  t.map = [](CUdeviceptr at, std::size_t n, std::size_t, CUmemGenericAllocationHandle h, unsigned long long) {
    const bool right = now->handles.contains(h) && now->handles[h] == n && !now->mapped.contains(at);
    if (const CUresult e = now->answer(right); e != CUDA_SUCCESS) return e;
    now->mapped[at] = n;
    return CUDA_SUCCESS;
  };
  t.unmap = [](CUdeviceptr at, std::size_t n) {
    const bool whole = now->mapped.contains(at) && now->mapped[at] == n;
    now->mapped.erase(at);
    return now->answer(whole);
  };
  t.set_access = [](CUdeviceptr at, std::size_t n, const CUmemAccessDesc*, std::size_t) {
    if (const CUresult e = now->answer(now->is_mapped(at, n)); e != CUDA_SUCCESS) return e;
    now->accessible = n;
    return CUDA_SUCCESS;
  };
  return t;
}

}  // namespace

TEST_CASE("an allocation takes granules and a rest, gives them back, and takes them again where they were") {
  fake_driver driver;
  now = &driver;
  device d;
  {
    virtual_memory vmm(d, table(), 0, unit);
    CHECK_FALSE(vmm.takes(unit - 1));
    REQUIRE(vmm.takes(unit));
    void* at = vmm.allocate(3 * granule + 1);
    void* beside = vmm.allocate(unit);
    REQUIRE((at && beside && at != beside));
    CHECK((vmm.owns(at) && !vmm.owns(&driver)));
    CHECK(driver.mapped.size() == 3 + 1 + 1);
    CHECK(driver.bytes() == 3 * granule + unit + unit);
    for (int i = 0; i < 2; ++i) {
      CHECK(vmm.give_back(at) == 3 * granule + unit);
      CHECK(vmm.give_back(at) == 0);
      CHECK(driver.bytes() == unit);
      CHECK(vmm.take_again(at));
      CHECK(driver.accessible == 3 * granule + unit);
      CHECK(driver.bytes() == 3 * granule + unit + unit);
    }
    CHECK(driver.handles.empty());
    vmm.give_back(at);
    vmm.free(at);
    CHECK(driver.reserved.size() == 1);
    CHECK(vmm.allocate(~std::uint64_t{0}) == nullptr);
  }
  CHECK((driver.mapped.empty() && driver.reserved.empty() && !driver.wrong));
  CHECK_FALSE(d.failed());
}

TEST_CASE("parts of a reservation come and go in pieces, and all of it is freed with what it has") {
  fake_driver driver;
  now = &driver;
  device d;
  constexpr std::uint64_t piece = 4 * unit;
  {
    virtual_memory vmm(d, table(), 0, unit);
    auto* at = static_cast<std::byte*>(vmm.reserve(10 * piece, piece));
    REQUIRE(at);
    CHECK((vmm.owns(at) && vmm.reserved(at + 10 * piece - 1) && !vmm.reserved(at + 10 * piece)));
    CHECK(driver.bytes() == 0);
    REQUIRE(vmm.take_part(at + 2 * piece, 3 * piece));
    CHECK(driver.mapped.size() == 3);
    REQUIRE(vmm.take_part(at + 5 * piece, piece + unit));
    CHECK(driver.bytes() == 4 * piece + unit);
    CHECK(vmm.give_back_part(at + 4 * piece, 6 * piece) == 2 * piece + unit);
    CHECK(driver.bytes() == 2 * piece);
    CHECK(vmm.give_back_part(at + 4 * piece, 6 * piece) == 0);
    REQUIRE(vmm.take_part(at + 4 * piece, 2 * piece));
    void* beside = vmm.allocate(unit);
    CHECK((vmm.owns(beside) && !vmm.reserved(beside)));
    vmm.free(at);
    CHECK((driver.bytes() == unit && !vmm.owns(at)));
    REQUIRE(vmm.take_part(vmm.reserve(piece, piece), piece));
  }
  CHECK((driver.mapped.empty() && driver.reserved.empty() && driver.handles.empty() && !driver.wrong));
  CHECK_FALSE(d.failed());
}

TEST_CASE("whatever call of the driver fails, a part has all of its memory or none") {
  constexpr std::uint64_t piece = 4 * unit;
  constexpr int calls = 3 * 3 + 1;  // to make, map and release each piece; access
  const auto failure = GENERATE(CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_DEVICE);
  int failed = 0;
  for (int call = 0; call < 20; ++call) {
    CAPTURE(failure, call);
    fake_driver driver;
    now = &driver;
    driver.failure = failure;
    device d;
    {
      virtual_memory vmm(d, table(), 0, unit);
      auto* at = static_cast<std::byte*>(vmm.reserve(10 * piece, piece));
      REQUIRE(vmm.take_part(at, 2 * piece));
      driver.fails_in = call;
      const bool taken = vmm.take_part(at + 2 * piece, 2 * piece + unit);
      const bool hit = driver.fails_in < 0;
      driver.fails_in = -1;
      failed += hit;
      CHECK(driver.mapped.size() == (taken ? 5 : 2));
      CHECK(driver.handles.empty());
      CHECK((taken || hit));
      CHECK_FALSE(d.failed());  // it is told on the device's thread
      const bool broken = hit && failure != CUDA_ERROR_OUT_OF_MEMORY;
      if (!taken) CHECK(vmm.take_part(at + 2 * piece, piece) == !broken);
      CHECK((vmm.allocate(unit) == nullptr) == broken);
      CHECK(d.failed() == broken);
    }
    CHECK((driver.mapped.empty() && driver.reserved.empty() && !driver.wrong));
  }
  CHECK(failed == calls);
}

TEST_CASE(
    "whatever call of the driver fails, memory is all there or not at all, and a shortage is no fault") {
  constexpr std::uint64_t bytes = 2 * granule + unit;
  constexpr int calls = 3 * 3 + 1;  // to make, map and release each granule; access
  const auto failure = GENERATE(CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_DEVICE);
  const bool again = GENERATE(false, true);  // a range that was given back; or a new one, with its addresses
  int failed = 0;
  for (int call = 0; call < 20; ++call) {
    CAPTURE(failure, again, call);
    fake_driver driver;
    now = &driver;
    driver.failure = failure;
    device d;
    {
      virtual_memory vmm(d, table(), 0, unit);
      void* at = again ? vmm.allocate(bytes) : nullptr;
      if (again) vmm.give_back(at);
      driver.fails_in = call;
      const bool taken = again ? vmm.take_again(at) : (at = vmm.allocate(bytes)) != nullptr;
      const bool hit = driver.fails_in < 0;
      driver.fails_in = -1;
      failed += hit;
      CHECK(driver.mapped.size() == (taken ? 3 : 0));
      CHECK(driver.reserved.size() == (taken || again ? 1 : 0));
      CHECK(driver.handles.empty());
      CHECK((taken || hit));
      CHECK(d.failed() == (hit && failure != CUDA_ERROR_OUT_OF_MEMORY));
      if (again) {
        CHECK(vmm.take_again(at));
        CHECK(driver.bytes() == bytes);
      }
    }
    CHECK((driver.mapped.empty() && driver.reserved.empty() && !driver.wrong));
  }
  CHECK(failed == calls + (again ? 0 : 1));
}

}  // namespace weir::tests::cuda_vmm_test
#endif
