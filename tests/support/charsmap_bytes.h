// charsmap_bytes.h — writes SentencePiece's tables of replacements for tests: a double array in which every
// node has a block of its own, so it is large and simple.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::tests {

inline std::string little_endian_word(std::uint32_t value) {
  std::string out;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}

class charsmap_writer {
 public:
  // `rules`: what is replaced (not empty, without NUL), and by what.
  charsmap_writer(std::initializer_list<std::pair<std::string, std::string>> rules) {
    nodes_.emplace_back();
    for (const auto& [from, to] : rules) {
      std::size_t at = 0;
      for (const char c : from) at = child(at, static_cast<unsigned char>(c));
      nodes_[at].value = static_cast<std::int64_t>(replacements.size());
      replacements += to + '\0';
    }
    units.assign(nodes_.size() * 256 + 256, 0xFF);  // a label that no unit in its place may have
    // Unit 0 is the root and leads to block 1; node n has block n + 1.
    units[0] = packed(0, 0);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const std::size_t block = (n + 1) * 256;
      units[block] = nodes_[n].value < 0 ? 0xFF : 0x8000'0000 | static_cast<std::uint32_t>(nodes_[n].value);
      units[block + 0xFF] = 0;
      for (const auto& [byte, to] : nodes_[n].children) units[block + byte] = packed(block + byte, to) | byte;
    }
  }

  std::string table() const {
    std::string out = little_endian_word(static_cast<std::uint32_t>(units.size() * 4));
    for (const std::uint32_t unit : units) out += little_endian_word(unit);
    return out + replacements;
  }

  std::vector<std::uint32_t> units;
  std::string replacements;

 private:
  struct node {
    std::map<unsigned char, std::size_t> children;
    std::int64_t value = -1;
  };

  std::size_t child(std::size_t of, unsigned char byte) {
    if (const auto found = nodes_[of].children.find(byte); found != nodes_[of].children.end())
      return found->second;
    nodes_.emplace_back();
    return nodes_[of].children[byte] = nodes_.size() - 1;
  }
  std::uint32_t packed(std::size_t at, std::size_t node) const {
    const auto offset = static_cast<std::uint32_t>(at ^ ((node + 1) * 256));
    return offset << 10 | (nodes_[node].value >= 0 ? 1u << 8 : 0);
  }

  std::vector<node> nodes_;
};

}  // namespace weir::tests
