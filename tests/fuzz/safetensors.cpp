// Any bytes as a safetensors file or as a shard index; a file that is accepted must keep its promises. Its
// tensors are joined as linears of every quantised form, and what is joined is read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/model/load/fill.h"
#include "core/model/load/opened_file.h"
#include "core/model/load/quantised.h"
#include "core/model/load/safetensors.h"

namespace {

void join_and_read(const std::string& path, const weir::core::quant_config& q) {
  using namespace weir;
  auto file = core::opened_file::open(path);
  if (!file) return;
  auto tensors = core::parse_safetensors(file->bytes(), path, core::fetching(*file));
  core::checkpoint all;
  if (!tensors || !all.add(std::move(*file), std::move(*tensors), path)) return;
  core::model_config c;
  c.quantised = q;
  if (!core::join_quantised(all, c)) return;
  for (const auto& [name, t] : all.tensors()) {
    if (!t.made_by) continue;
    if (t.shape.size() != 2) std::abort();
    const std::uint64_t columns = t.inputs ? t.inputs->size() : t.shape[1];
    if (columns % 32 != 0 || columns < t.shape[1]) std::abort();
    if (t.inputs)
      for (const std::uint32_t k : *t.inputs)
        if (k >= t.shape[1]) std::abort();
    std::vector<std::byte> row(kernels::bytes_of(core::supported_type(t.dtype).value(), columns));
    (void)all.read(t, (t.shape[0] - 1) * row.size(), row);
  }
}

void join_every_form(const std::uint8_t* data, std::size_t size) {
  using weir::core::quant_form;
  const int fd = memfd_create("fuzz", 0);
  if (fd < 0) return;
  if (write(fd, data, size) == static_cast<ssize_t>(size))
    for (const quant_form form :
         {quant_form::gptq, quant_form::awq, quant_form::packed, quant_form::whole_ints, quant_form::fp8,
          quant_form::mxfp4, quant_form::exl2})
      for (const std::uint32_t bits : {3u, 4u, 8u})
        for (const std::uint32_t group : {0u, 32u})
          join_and_read(fmt::format("/proc/self/fd/{}", fd),
                        {form, bits, group, true, group ? 128u : 0u, group * 4});
  close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::core;
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  if (const auto tensors = parse_safetensors(file, "fuzz")) {
    std::size_t covered = 0;
    for (const auto& [name, t] : *tensors) {
      if (!t.bytes.empty() && (t.bytes.data() < file.data() || &t.bytes.back() > &file.back())) std::abort();
      covered += t.bytes.size();
    }
    if (covered > size) std::abort();
    join_every_form(data, size);
  }
  if (const auto shards = parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz"))
    for (const auto& [name, shard] : *shards)
      if (shard.empty() || shard.find('/') != shard.npos) std::abort();
  return 0;
}
