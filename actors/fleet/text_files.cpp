#include "actors/fleet/text_files.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "actors/fleet/sha256.h"
#include "core/model/load/gguf_model.h"
#include "core/model/load/model_path.h"

namespace weir::actors::fleet {

namespace fs = std::filesystem;
namespace wire = core::fleet;
using core::errc;

namespace {

constexpr std::size_t chunk = std::size_t{1} << 20;

core::error cannot_give(const std::string& what) {
  return core::make_error(errc::not_supported, "workers do not give {} to gateways", what);
}

// A file that the model is read from, and that no list has: a list without it would be another model.
core::result<> check_others(const std::string& dir) {
  const auto known = [](const std::string& name) {
    return std::ranges::find(wire::directory_files(), name) != wire::directory_files().end();
  };
  const std::string templates = "additional_chat_templates";
  std::error_code ec;
  for (const auto& e : fs::directory_iterator(dir, ec))
    if (const auto name = e.path().filename().string(); e.path().extension() == ".tiktoken" && !known(name))
      return cannot_give("a vocabulary of the name " + name);
  for (const auto& e : fs::directory_iterator(dir + "/" + templates, ec))
    if (const auto name = templates + "/" + e.path().filename().string();
        e.path().extension() == ".jinja" && !known(name))
      return cannot_give("a template of the name " + name);
  return {};
}

}  // namespace

core::result<std::shared_ptr<const text_files>> text_files::open(const std::string& source) {
  const auto out = std::make_shared<text_files>();
  core::result<> fine;
  if (source == "sim" || source.starts_with("sim:")) {
    if (source.find("script=") != source.npos) return cannot_give("the script of a sim");
    out->list_.made_of = "sim";
  } else if (wire::is_made(source)) {
    out->list_.made_of = source;
  } else if (core::is_gguf_path(source)) {
    fine = out->open_gguf(source);
  } else {
    fine = out->open_directory(source);
  }
  if (fine) fine = wire::check_file_list(out->list_);
  if (!fine) return fine.error();
  out->list_bytes_ = wire::bytes_of(out->list_);
  out->digest_ = sha256_of(out->list_bytes_);
  return std::shared_ptr<const text_files>(out);
}

core::result<> text_files::open_directory(const std::string& dir) {
  if (auto fine = core::check_model_path(dir); !fine) return fine;
  if (auto fine = check_others(dir); !fine) return fine;
  for (const auto name : wire::directory_files()) {
    const auto path = dir + "/" + std::string(name);
    if (!core::file_exists(path)) continue;
    auto file = core::opened_file::open(path);
    if (!file) return file.error();
    const std::uint64_t size = file->bytes().size();
    opened_.push_back(std::move(*file));
    if (auto fine = add(std::string(name), opened_.size() - 1, 0, size); !fine) return fine;
  }
  return {};
}

core::result<> text_files::open_gguf(const std::string& path) {
  auto parts = core::open_gguf_parts(path);
  if (!parts) return parts.error();
  if (parts->files.size() > 1) return cannot_give("a GGUF model in several files");
  auto& whole = parts->files.front();
  const auto* const begin = whole.file.bytes().data();
  const auto place_of = [&](const core::stored_tensor& t) {
    return static_cast<std::uint64_t>(t.bytes.data() - begin);
  };
  std::uint64_t header = list_.gguf_size = whole.file.bytes().size();
  for (const auto& [name, t] : parts->tensors) header = std::min(header, place_of(t));
  opened_.push_back(std::move(whole.file));
  for (const auto name : wire::gguf_pieces()) {
    const auto t = parts->tensors.find(name);
    const bool is_header = name == wire::gguf_pieces().front();
    if (!is_header && t == parts->tensors.end()) continue;
    const auto fine = is_header ? add(std::string(name), 0, 0, header)
                                : add(std::string(name), 0, place_of(t->second), t->second.bytes.size());
    if (!fine) return fine;
  }
  return {};
}

// Bounds come before the work: no file is added up that no list may have.
core::result<> text_files::add(const std::string& name, std::size_t in, std::uint64_t at,
                               std::uint64_t size) {
  list_.files.push_back({name, size, at, {}});
  in_.push_back(in);
  if (auto fine = wire::check_file_list(list_); !fine) return fine;
  sha256 sum;
  std::string piece;
  for (std::uint64_t done = 0; done < size; done += piece.size()) {
    piece.resize(std::min<std::uint64_t>(chunk, size - done));
    const auto& file = opened_[in];
    if (auto fine = file.read(file.bytes(), at + done, std::as_writable_bytes(std::span(piece))); !fine)
      return fine;
    sum.add(piece);
  }
  list_.files.back().sum = sum.take();
  return {};
}

std::optional<std::string> text_files::read(std::uint32_t file, std::uint64_t at, std::size_t most) const {
  if (file == 0) return at <= list_bytes_.size() ? std::optional(list_bytes_.substr(at, most)) : std::nullopt;
  if (file > list_.files.size()) return std::nullopt;
  const auto& f = list_.files[file - 1];
  if (at > f.size) return std::nullopt;
  std::string out(std::min<std::uint64_t>(most, f.size - at), '\0');
  const auto& from = opened_[in_[file - 1]];
  if (!from.read(from.bytes(), f.at + at, std::as_writable_bytes(std::span(out)))) return std::nullopt;
  return out;
}

}  // namespace weir::actors::fleet
