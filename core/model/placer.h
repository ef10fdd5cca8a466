// placer.h — visits the weights that a config implies, in their order in memory. A placer without a base
// address checks the tensors and sums up their sizes. A placer with a base address also sets the pointers of
// matrices and vectors, and lists the tensors to be read into them. layer_placer.h says which weights a layer
// has.
//
// The first failure is kept, and whatever is placed after it is not to be used. Errors: those of
// plan_weights().
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/load/fill.h"
#include "core/model/weights.h"

namespace weir::core {

// A tensor, whose rows are some of those of a matrix.
struct weight_part {
  std::string name;
  std::uint32_t rows;
};

// The order of a matrix' inputs (kernels::matrix::inputs): `inputs` on the host is copied to `to`, in memory
// of the backend.
struct placed_order {
  std::byte* to;
  std::shared_ptr<const std::vector<std::uint32_t>> inputs;
};

class placer {
 public:
  // `from`: null for random weights, which are of `random_type`. `base`: null for sizes alone.
  placer(const checkpoint* from, kernels::dtype random_type, bool has_experts, const kernels::backend& on,
         std::byte* base);

  kernels::matrix matrix(const weight_part& p, std::uint32_t cols);

  // A matrix whose rows are read one by one. Its columns must therefore be its inputs in order.
  kernels::matrix table(const weight_part& p, std::uint32_t cols);

  // Stacks parts along their rows: into one matrix, or into several where their types or inputs differ.
  linear_weight stack(const std::vector<weight_part>& parts, std::uint32_t cols);

  // Stacks the parts of each element of `all` along their rows, into one matrix an element. The matrices have
  // one type and follow one another in memory. Where plain types differ, all matrices are f32.
  kernels::expert_matrices experts(const std::vector<std::vector<weight_part>>& all, std::uint32_t cols);

  // Matrices of f32 behind each other.
  const float* rows(std::initializer_list<weight_part> list, std::uint32_t cols);

  // Parts behind each other, in f32.
  const float* vector(std::initializer_list<weight_part> list);
  const float* vector(std::span<const weight_part> parts);

  // The weights of a norm in f32, each plus `more`. A norm of heads may have a row for each head.
  const float* norm(const std::string& name, std::uint32_t heads, std::uint32_t width, float more);

  // A vector of ones, for a norm without weights.
  const float* ones(std::uint32_t elements);

  // Whether the files have a tensor of this name. Random models have every tensor by itself.
  bool has(const std::string& name) const { return from_ && from_->find(name); }

  // Refuses tensors that the config does not imply. To ignore one would change the model's output silently.
  void check_nothing_left();
  void refuse(std::string_view thing);
  // Records the failure not_supported if the backend has no operations for mixtures of experts.
  void need_experts();

  std::uint64_t bytes() const noexcept { return offset_; }
  std::vector<placed>& all() noexcept { return all_; }
  std::vector<placed_order>& orders() noexcept { return orders_; }
  const std::optional<error>& failure() const noexcept { return failure_; }

 private:
  static constexpr std::uint64_t alignment = 256;  // bytes; as in the memory that a backend allocates

  kernels::dtype check(const std::string& name, std::vector<std::uint64_t> shape);
  kernels::dtype type_of_all(const std::vector<std::vector<weight_part>>& all, std::uint32_t cols);
  void refuse_types(const weight_part& a, kernels::dtype first, const weight_part& b, kernels::dtype second);
  void refuse_order(const weight_part& p);
  static bool fits(const stored_tensor& t, std::vector<std::uint64_t> shape);
  std::shared_ptr<const std::vector<std::uint32_t>> inputs_of(const weight_part& p) const;
  bool same_inputs(const weight_part& a, const weight_part& b) const;
  kernels::dtype random_type_of(const std::string& name) const;
  kernels::dtype take_type(kernels::dtype type, std::string_view named, const std::string& tensor);
  kernels::matrix one(std::span<const weight_part> parts, std::uint32_t cols, kernels::dtype type);
  const std::uint32_t* place_order(const std::shared_ptr<const std::vector<std::uint32_t>>& inputs);
  std::byte* take(std::uint64_t bytes);
  void add(placed p, std::span<const weight_part> parts, std::uint32_t cols);
  kernels::dtype fail(errc code, std::string message);

  const checkpoint* from_;
  kernels::dtype random_type_;
  bool has_experts_;
  const kernels::backend& on_;
  std::byte* base_;
  std::uint64_t offset_ = 0;
  std::vector<placed> all_;
  std::vector<placed_order> orders_;
  placed_order last_order_{};
  std::set<std::string, std::less<>> used_;
  std::optional<error> failure_;
};

}  // namespace weir::core
