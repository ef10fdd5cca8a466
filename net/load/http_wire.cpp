#include "net/load/http_wire.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::load {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_name(std::string_view a, std::string_view lower_case) {
  return std::ranges::equal(a, lower_case, {}, lower);
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

bool holds(std::string_view list, std::string_view word) {
  std::string all(list);
  std::ranges::transform(all, all.begin(), lower);
  return all.find(word) != all.npos;
}

}  // namespace

std::string http_request(std::string_view authority, std::string_view path, std::string_view body,
                         std::string_view key) {
  std::string out = body.empty() ? "GET " : "POST ";
  out.append(path).append(" HTTP/1.1\r\nHost: ").append(authority).append("\r\n");
  if (!key.empty()) out.append("Authorization: Bearer ").append(key).append("\r\n");
  if (!body.empty()) {
    out.append("Content-Type: application/json\r\nContent-Length: ")
        .append(std::to_string(body.size()))
        .append("\r\n");
  }
  return out.append("\r\n").append(body);
}

int http_status(std::string_view head) {
  int status = 0;
  if (!head.starts_with("HTTP/1.") || head.size() < 12) return 0;
  std::from_chars(head.data() + 9, head.data() + 12, status);
  return status;
}

std::string_view http_header(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const auto end = std::min(head.find("\r\n"), head.size());
    const auto line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const auto colon = line.find(':');
    if (colon != line.npos && same_name(line.substr(0, colon), name)) return trimmed(line.substr(colon + 1));
  }
  return {};
}

void http_reader::feed(std::string_view bytes) {
  bytes_.erase(0, at_);
  at_ = 0;
  bytes_ += bytes;
}

http_reader::item http_reader::fail(std::string_view why) {
  now_ = state::over;
  item i;
  i.is = kind::broken;
  i.bytes = why;
  return i;
}

std::optional<std::string_view> http_reader::line() {
  const std::string_view all = std::string_view(bytes_).substr(at_);
  const auto end = all.find("\r\n");
  if (end == all.npos) return std::nullopt;
  at_ += end + 2;
  return all.substr(0, end);
}

http_reader::item http_reader::take(std::size_t most, state then) {
  const auto n = std::min(most, bytes_.size() - at_);
  item i;
  if (n == 0) return i;
  i.is = kind::data;
  i.bytes = std::string_view(bytes_).substr(at_, n);
  at_ += n;
  if (now_ != state::until_end && (left_ -= n) == 0) {
    now_ = then;
    end_due_ = then == state::head;
  }
  return i;
}

http_reader::item http_reader::read_head(std::string_view all) {
  const auto end = all.find("\r\n\r\n");
  if (end == all.npos) return all.size() > longest_head ? fail("an endless header") : item{};
  const auto head = all.substr(0, end + 2);
  at_ += end + 4;
  item i;
  i.is = kind::head;
  i.status = http_status(head);
  if (i.status == 0) return fail("no HTTP/1 answer");
  if (i.status == 100) return next();
  i.keeps_alive = !holds(http_header(head, "connection"), "close") && !head.starts_with("HTTP/1.0");
  const auto length = http_header(head, "content-length");
  if (holds(http_header(head, "transfer-encoding"), "chunked")) {
    now_ = state::chunk_size;
  } else if (!length.empty()) {
    const auto [last, ec] = std::from_chars(length.data(), length.data() + length.size(), left_);
    if (ec != std::errc() || last != length.data() + length.size()) return fail("a length that is no number");
    now_ = left_ ? state::sized : state::head;
    end_due_ = left_ == 0;
  } else {
    now_ = state::until_end;
    i.keeps_alive = false;
  }
  return i;
}

http_reader::item http_reader::next() {
  if (std::exchange(end_due_, false)) {
    item i;
    i.is = kind::end;
    return i;
  }
  for (;;) {
    const std::string_view all = std::string_view(bytes_).substr(at_);
    switch (now_) {
      case state::head:
        return read_head(all);
      case state::sized:
        return take(left_, state::head);
      case state::until_end:
        return take(all.size(), state::until_end);
      case state::chunk_size: {
        const auto text = line();
        if (!text) return all.size() > longest_head ? fail("an endless chunk size") : item{};
        const auto digits = trimmed(text->substr(0, text->find(';')));
        const auto [last, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
        if (ec != std::errc() || last != digits.data() + digits.size()) return fail("a chunk without a size");
        now_ = left_ ? state::chunk : state::trailer;
        break;
      }
      case state::chunk:
        return take(left_, state::chunk_end);
      case state::chunk_end: {
        const auto text = line();
        if (!text) return item{};
        if (!text->empty()) return fail("a chunk longer than its size");
        now_ = state::chunk_size;
        break;
      }
      case state::trailer: {
        const auto text = line();
        if (!text) return item{};
        if (!text->empty()) break;
        now_ = state::head;
        item i;
        i.is = kind::end;
        return i;
      }
      case state::over:
        return item{};
    }
  }
}

bool http_reader::ended() {
  const bool whole = now_ == state::until_end || (now_ == state::head && at_ == bytes_.size());
  now_ = state::over;
  return whole;
}

void sse_reader::feed(std::string_view bytes) {
  if (too_long_) return;
  bytes_.erase(0, at_);
  at_ = 0;
  bytes_ += bytes;
}

void sse_reader::reset() { *this = {}; }

bool sse_reader::judge_length(std::size_t line) {
  if (data_.size() + line <= longest_event) return true;
  reset();
  too_long_ = true;
  return false;
}

// Lines end with LF, CR LF or CR. A CR that is the last byte so far may be half of a CR LF, so its line is
// not taken yet.
std::optional<std::string_view> sse_reader::next() {
  if (!some_) data_.clear();
  for (;;) {
    const std::string_view all = std::string_view(bytes_).substr(at_);
    const auto end = all.find_first_of("\r\n");
    if (!judge_length(std::min(end, all.size()))) return std::nullopt;
    if (end == all.npos || (all[end] == '\r' && end + 1 == all.size())) return std::nullopt;
    const auto line = all.substr(0, end);
    at_ += end + (all.substr(end).starts_with("\r\n") ? 2 : 1);
    if (line.empty()) {
      if (std::exchange(some_, false)) return data_;
      continue;
    }
    if (!line.starts_with("data:")) continue;  // a comment, or another field
    auto value = line.substr(5);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (some_) data_ += '\n';
    data_ += value;
    some_ = true;
  }
}

}  // namespace weir::load
