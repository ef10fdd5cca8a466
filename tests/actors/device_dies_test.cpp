// A server on a device whose context was broken by a kernel. A broken context stays broken for the whole
// process, so the server has a process of its own: this program, started once more.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "kernels/cuda/backend.h"
#include "tests/actors/service_fixture.h"

namespace weir::tests::device_dies_test {
namespace {

// A kernel that accesses an illegal address, which breaks the context that all kernels of this process share.
// The constructor makes what takes time to make (a stream, a library's handle, the kernel's code), so that
// strike() makes nothing.
class planted_fault {
 public:
  planted_fault() {
    b_->run(kernels::add{good_, good_, count});
    CHECK(fault().empty());
  }

  // The fault has happened when this returns. Every later call to the device reports it.
  void strike() {
    b_->run(kernels::add{nowhere, nowhere, count});
    CHECK_THAT(fault(), Catch::Contains("cudaErrorIllegalAddress"));
  }

 private:
  static constexpr std::size_t count = 1024;
  // no process has a first page
  static inline float* const nowhere = reinterpret_cast<float*>(std::uintptr_t{256});

  static const kernels::backend* open() {
    std::string why;
    // Never freed: the backend's memory ends with the context, whoever ends the context.
    const auto& b = *new auto(kernels::cuda_backend(0, why));
    INFO(why);
    REQUIRE(b);
    return b.get();
  }
  // Waits for the device's work, and returns the device's fault; empty: none.
  std::string fault() const {
    float first = 0;
    b_->do_download(b_->self, &first, good_, sizeof(first));
    const char* why = b_->fault(b_->self);
    return why ? why : "";
  }

  const kernels::backend* b_ = open();
  float* good_ = static_cast<float*>(b_->do_allocate(b_->self, count * sizeof(float)));
};

int run_in_process(const char* test) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/proc/self/exe", "test_actors", test, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE(
    "cuda: behind a device that dies jobs go on where the server starts again, and end with its error where "
    "it says why it cannot") {
  std::string why;
  if (kernels::cuda_devices(why) == 0) {
    std::cerr << "skipped: " << why << "\n";
    return;
  }
  CHECK(run_in_process("a server whose device dies") == 0);
}

TEST_CASE("a server whose device dies", "[.]") {
  service_fixture f("", [](auto& o) {
    o.models = {{"m", "random:tiny-110m:bf16"}};
    o.owner.device = "cuda:0";
    o.owner.max_seq_len = 16384;
    o.owner.max_batch = 4;
    o.owner.kv_tokens = 32768;
  });
  f.load();
  planted_fault fault;
  auto endless = ask("w1 w2 w3", 16000);  // runs for seconds; the fault takes far less than one
  endless.ignore_eos = true;
  const auto job = f.submit(endless);
  f.run_until([&] { return job->published() > 0; });
  REQUIRE(job->state() != phase::done);
  fault.strike();
  f.run_to_end(job);
  REQUIRE(job->state() == phase::done);
  const bool went_on = job->ended().reason == core::finish_reason::length;
  if (!went_on) {
    CHECK(job->ended().reason == core::finish_reason::error);
    REQUIRE(job->ended().fault);
    CHECK(job->ended().fault->message.find("the device failed: cuda:0: cudaError") == 0);
  }

  // A driver may give the process another context, or none: then the owner stays down.
  f.run_until([&] {
    const auto now = f.service->ready();
    return now.ready || now.reason.find("cannot be started again") != std::string::npos;
  });
  const bool ready = f.service->ready().ready;
  CHECK(went_on == ready);
  std::cerr << (ready ? "it started again" : f.service->ready().reason) << "\n";
  const auto after = f.submit(ask("w1 w2 w3", 3));
  f.run_to_end(after);
  if (ready) {
    CHECK(after->ended().reason == core::finish_reason::length);
  } else {
    REQUIRE(after->state() == phase::refused);
    CHECK(after->refusal().message == f.service->ready().reason);
  }
}

}  // namespace weir::tests::device_dies_test
