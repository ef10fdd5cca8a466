#include "core/text/chat_template.h"

#include "core/text/json_field.h"
#include "core/text/read_file.h"

namespace weir::core {
namespace {

// The text of docs/chatml.jinja.
constexpr std::string_view chatml_source =
    R"({% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + )"
    R"('<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

std::vector<tokenizer::part> chatml_parts(const std::vector<message>& messages) {
  std::vector<tokenizer::part> parts;
  for (const message& m : messages) {
    parts.push_back({"<|im_start|>", true});
    parts.push_back({m.role, false});
    parts.push_back({"\n", true});
    parts.push_back({m.content, false});
    parts.push_back({"<|im_end|>\n", true});
  }
  parts.push_back({"<|im_start|>assistant\n", true});
  return parts;
}

// The field is a string, or a list of {name, template} of which the one named "default" is taken.
std::optional<std::string> template_in(const json_field& config) {
  const auto field = config.find("chat_template");
  if (!field) return std::nullopt;
  if (!field->is_array()) return std::string(field->text());
  for (const json_field& item : field->items()) {
    if (item.at("name").text() == "default") return std::string(item.at("template").text());
  }
  field->refuse("a list of templates without one named 'default'");
}

// chat_template.jinja has precedence over the field in tokenizer_config.json.
result<std::optional<std::string>> find_source(const std::string& dir) {
  auto own = read_file(dir + "/chat_template.jinja");
  if (!own || *own) return own;
  auto config = read_file(dir + "/tokenizer_config.json");
  if (!config || !*config) return config;
  try {
    const auto document = parse_json(**config, dir + "/tokenizer_config.json", {});
    return template_in(json_field(document, dir + "/tokenizer_config.json"));
  } catch (const refusal& r) {
    return r.why;
  }
}

}  // namespace

std::shared_ptr<const chat_template> chat_template::chatml() {
  return from_source(std::string(chatml_source));
}

std::shared_ptr<const chat_template> chat_template::from_source(std::string source) {
  std::optional<std::string> unsupported;
  if (source != chatml_source) unsupported = std::move(source);
  return std::shared_ptr<const chat_template>(new chat_template(std::move(unsupported)));
}

result<std::shared_ptr<const chat_template>> chat_template::load(const std::string& dir, bool force_chatml) {
  if (force_chatml) return chatml();
  auto source = find_source(dir);
  if (!source) return source.error();
  return *source ? from_source(std::move(**source)) : chatml();
}

result<> chat_template::check() const {
  if (!unsupported_) return {};
  return make_error(errc::not_supported,
                    "the model's chat_template is not supported yet: of templates only ChatML is. "
                    "Start with --chatml to use ChatML for this model, or send the prompt as text");
}

result<std::vector<token_id>> chat_template::encode(const std::vector<message>& messages,
                                                    const tokenizer& t) const {
  if (auto supported = check(); !supported) return supported.error();
  return t.encode_parts(chatml_parts(messages));
}

result<std::string> chat_template::render(const std::vector<message>& messages) const {
  if (auto supported = check(); !supported) return supported.error();
  std::string text;
  for (const auto& part : chatml_parts(messages)) text += part.text;
  return text;
}

}  // namespace weir::core
