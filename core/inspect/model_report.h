// model_report.h — what can be said of a model's files without reading a weight: what a server would do with
// them, and why it would not.
//
// A model that cannot be served is described as far as its files can be read.
//
// Thread safety: plain data; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/inspect/device_report.h"
#include "core/model/config.h"
#include "core/model/generation_config.h"
#include "core/text/answer/format.h"

namespace weir::core {

// Sizes that a description names; 0: it does not.
struct model_sizes {
  std::uint64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, inter = 0, vocab = 0;
  std::uint64_t context = 0;            // most tokens of a sequence, as the files say
  std::uint64_t experts = 0, used = 0;  // of a mixture, and how many of them a token has
};

// Tensors of one type, as the container names it.
struct tensor_group {
  std::string type;
  std::uint64_t tensors = 0, bytes = 0;
};

struct named_token {
  std::string role, spelling;  // bos_token, <s>
  std::int32_t id = -1;        // -1: not in the vocabulary
};

struct tokenizer_report {
  std::string kind;                  // "BPE, byte-level"
  std::uint32_t vocab = 0;           // one past the largest id
  std::uint32_t control = 0;         // control tokens
  bool adds_bos = false;             // to a raw prompt
  std::vector<named_token> special;  // that files name, by role
};

struct template_report {
  std::string origin;       // a file or key, or "ChatML"
  std::uint64_t bytes = 0;  // of the template for conversations without tools; 0: there is none
  answer_format format;     // of conversations with tools
  std::string refused;      // why messages are refused; empty: they are taken
};

struct model_report {
  std::string path, container;  // container: safetensors, GGUF; empty: neither
  // Why the model cannot be served, a sentence each; empty: the files give no reason.
  std::vector<std::string> refused;
  std::vector<std::string> notes;  // as opened_model

  std::string architecture;  // as the files say; empty: they do not
  std::string row;           // the architecture of the family that serves it; empty: none does
  bool wrapped = false;      // the text model of one that also sees
  model_sizes sizes;
  std::optional<model_config> config;  // with the served context; nullopt: the description is refused
  boost::json::object keys;  // of a description that is refused: what else it says, lists as counts of values

  std::vector<tensor_group> tensors;      // as stored, most bytes first; empty: they cannot be listed
  std::uint64_t parameters = 0;           // of all tensors that count; 0: unknown
  std::string embedding_type, head_type;  // as stored, or as converted; empty: unknown
  std::optional<generation_config> generation;
  std::optional<tokenizer_report> tokens;
  std::optional<template_report> chat;
  // The model's stop ids with their pieces, where there is a tokenizer.
  std::vector<std::pair<token_id, std::string>> stops;
  std::vector<device_report> devices;  // what was asked of them

  // Whether the model can be served: nothing is refused, and one of the devices, if there are any, takes it.
  bool served() const noexcept;
};

// Describes the model at `path`: a directory in Hugging Face layout, or a GGUF file. `context` as for
// inspect_model() (core/model/load.h). Devices are left out.
model_report describe_model(const std::string& path, std::uint32_t context = 0);

// Adds what devices say. An error that all of them have becomes one of the model.
void add_devices(model_report& m, std::vector<device_report> devices);

}  // namespace weir::core
