#include "core/model/load/quantised_parts.h"

#include <algorithm>
#include <span>

#include "core/model/load/group_values.h"
#include "core/model/load/rectangle.h"

namespace weir::core {
namespace {

using kernels::code_block;
using kernels::code_lines;
using kernels::file_codes;
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 least_columns = 128;         // file_codes::column is a multiple of it
constexpr u64 checked_at_once = 1u << 18;  // bytes, so that a cache still has them

// Where the codes of a part lie in the file.
struct code_place {
  rectangle words;
  u64 first_bit = 0;  // of the words' streams, where they do not begin at the first code
};

class part_reader {
 public:
  explicit part_reader(const quantised_linear& l) : l_(l) {}

  // Sizes, and the arrays of a part at `to`; null: sizes alone.
  file_codes lay_out(const tensor_part& p, std::byte* to) const {
    file_codes c;
    c.row = p.row;
    c.rows = p.rows;
    c.column = p.column;
    c.columns = p.columns;
    c.lines = lines();
    c.is_signed = l_.config.form == quant_form::whole_ints;
    c.moves_zeros = l_.config.form == quant_form::exl2;
    c.zero_code = l_.type == kernels::dtype::q4_0 ? 8 : 128;
    c.groups_first = c.lines != code_lines::along_rows;  // as their files have them
    c.groups = last_group(p) - first_group(p) + 1;
    const rectangle words = place_of(p).words;
    c.across = static_cast<u32>(words.columns);
    const auto take = [&]<class T>(const T*& array, u64 count) {
      array = to ? reinterpret_cast<const T*>(to + c.bytes) : nullptr;
      c.bytes += count * sizeof(T);
    };
    take(c.codes, words.rows * words.columns);
    take(c.scales, u64{c.rows} * c.groups);
    take(c.blocks, c.columns / 32);
    if (is_scattered()) take(c.places, c.columns);
    take(c.zeros, u64{c.rows} * c.groups);
    return c;
  }

  // Whether a part may have some columns alone.
  bool cuts_columns() const { return lines() != code_lines::along_rows && !is_scattered(); }

  // Whether the codes of some rows are not consecutive in the file.
  bool is_cut_up() const { return lines() == code_lines::down_columns && is_scattered(); }

  result<file_codes> read(const checkpoint& from, const tensor_part& p, std::byte* to) const {
    const file_codes c = lay_out(p, to);
    const auto writable = [&]<class T>(const T* array) { return const_cast<T*>(array); };
    if (auto ok = read_words(from, p, writable(c.codes)); !ok) return ok.error();
    const group_range range{p.row, p.rows, first_group(p), c.groups, c.groups_first};
    if (auto ok = read_group_values(l_, from, range, writable(c.scales), writable(c.zeros)); !ok)
      return ok.error();
    for (u32 b = 0; b < c.columns / 32; ++b) writable(c.blocks)[b] = block_of(p, b);
    if (c.places) std::copy_n(l_.order->data() + p.column, p.columns, writable(c.places));
    return c;
  }

 private:
  code_lines lines() const {
    switch (l_.config.form) {
      case quant_form::gptq:
      case quant_form::exl2:
        return code_lines::down_columns;
      case quant_form::awq:
        return code_lines::awq;
      default:
        return code_lines::along_rows;
    }
  }
  // Whether the codes of neighbouring columns are not neighbours in the file.
  bool is_scattered() const { return l_.order && l_.config.form != quant_form::exl2; }

  u32 first_group(const tensor_part& p) const { return l_.group_of(p.column / 32); }
  u32 last_group(const tensor_part& p) const { return l_.group_of((p.column + p.columns) / 32 - 1); }

  u32 bits_of(u32 block) const {
    if (l_.config.form == quant_form::exl2) return l_.exl2.groups[l_.group_of(block)].bits;
    if (l_.codes.dtype == "I32") return l_.config.bits;
    return l_.config.form == quant_form::mxfp4 ? 4 : 8;
  }
  // The bit of its stream at which a block begins.
  u64 bit_of(u32 block) const {
    if (l_.config.form != quant_form::exl2) return u64{block} * 32 * bits_of(block);
    const exl2_group& g = l_.exl2.groups[l_.group_of(block)];
    return u64{g.first_word} * 32 + u64{block * 32 - g.first_column} * g.bits;
  }
  // The columns of a block that have codes.
  u32 codes_of(u32 block) const {
    u32 column = block * 32, inputs = l_.inputs;
    if (l_.config.form == quant_form::exl2) {
      const exl2_group& g = l_.exl2.groups[l_.group_of(block)];
      column -= g.first_column;
      inputs = g.inputs;
    }
    return inputs > column ? std::min(32u, inputs - column) : 0;
  }

  code_place place_of(const tensor_part& p) const {
    const auto& shape = l_.codes.shape;
    if (lines() == code_lines::awq) return {{p.column, p.columns, p.row / 8, (p.rows + 7) / 8}};
    if (lines() == code_lines::along_rows) {
      const bool bytes = l_.codes.dtype != "I32";
      return {{p.row, p.rows, 0, bytes ? shape[1] / 4 : shape[1]}};
    }
    if (is_scattered()) return {{0, shape[0], p.row, p.rows}};
    const u32 last = (p.column + p.columns) / 32 - 1;
    const u64 first = bit_of(p.column / 32) / 32,
              end = (bit_of(last) + u64{codes_of(last)} * bits_of(last) + 31) / 32;
    return {{first, end - first, p.row, p.rows}, first * 32};
  }

  code_block block_of(const tensor_part& p, u32 b) const {
    const u32 block = p.column / 32 + b;
    return {l_.group_of(block) - first_group(p), static_cast<u32>(bit_of(block) - place_of(p).first_bit),
            static_cast<std::uint16_t>(bits_of(block)), static_cast<std::uint16_t>(codes_of(block))};
  }

  // Reads the words of a part. Codes along rows may be bytes in the file, four to a word; floats among them
  // are checked.
  result<void> read_words(const checkpoint& from, const tensor_part& p, u32* to) const {
    const rectangle words = place_of(p).words;
    if (l_.codes.dtype == "I32") return read_rectangle(from, l_.codes, words, to);
    const u64 width = words.columns, most = std::max<u64>(1, checked_at_once / (4 * width));
    for (u64 row = 0; row < words.rows; row += most) {
      const u64 rows = std::min(most, words.rows - row);
      u32* const here = to + row * width;
      const rectangle some{words.row + row, rows, 0, 4 * width};
      if (auto ok = read_rectangle(from, l_.codes, some, reinterpret_cast<u8*>(here)); !ok) return ok;
      if (l_.config.form == quant_form::fp8 && has_nan({here, rows * width}))
        return make_error(errc::bad_file, "tensor '{}': a weight in rows {} to {} is NaN", l_.codes_name,
                          some.row, some.row + rows - 1);
    }
    return {};
  }

  // Whether one of four e4m3 in a word is NaN: all of its bits but the sign are set.
  static bool has_nan(std::span<const u32> words) {
    u32 all = 0;
    for (const u32 w : words) all |= (w & 0x7f7f7f7fu) + 0x01010101u;
    return (all & 0x80808080u) != 0;
  }

  const quantised_linear& l_;
};

}  // namespace

std::vector<tensor_part> parts_of(const quantised_linear& l, u32 rows, u64 most) {
  const part_reader reader(l);
  const bool cuts = reader.cuts_columns();
  // Where all words of a few rows are needed, the file has them in many runs: half as many in larger parts.
  if (reader.is_cut_up()) most *= 2;
  const u32 columns = l.columns(), least = cuts ? std::min(least_columns, columns) : columns;
  const auto bytes = [&](const tensor_part& p) { return reader.lay_out(p, nullptr).bytes; };
  const u64 strip = bytes({0, part_rows, 0, least, 0});  // the widest codes of exl2 are in front
  const u32 tall = static_cast<u32>(std::min<u64>(rows, std::max<u64>(1, most / strip) * part_rows));
  std::vector<tensor_part> out;
  for (u32 row = 0; row < rows; row += tall)
    for (u32 column = 0; column < columns;) {
      tensor_part p{row, std::min(tall, rows - row), column, std::min(least, columns - column), 0};
      p.columns =
          static_cast<u32>(std::min<u64>(columns - column, std::max<u64>(1, most / bytes(p)) * u64{least}));
      p.bytes = bytes(p);
      out.push_back(p);
      column += p.columns;
    }
  return out;
}

tensor_part whole_rows(const quantised_linear& l, u32 row, u32 rows) {
  tensor_part p{row, rows, 0, l.columns(), 0};
  p.bytes = part_reader(l).lay_out(p, nullptr).bytes;
  return p;
}

result<file_codes> read_part_of(const quantised_linear& l, const checkpoint& from, const tensor_part& part,
                                std::span<std::byte> to) {
  return part_reader(l).read(from, part, to.data());
}

}  // namespace weir::core
