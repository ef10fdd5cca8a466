// format.h — how the models of one family write their calls of tools and their reasoning: one description,
// from which come the grammar that constrains an answer (core/grammar/calls.h), the reader that takes an
// answer apart (reader.h), and the check at load (find_format.h).
//
// Thread safety: immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::core {

// How a call is written. Spellings have the white space that the model's template writes; the reader takes
// any white space at the ends of a spelling, also none. Parts of a spelling that are one token of the
// vocabulary are known by this token alone: the same characters as ordinary text are text.
struct call_format {
  enum class kind : std::uint8_t {
    object,    // section_open (open {name_key: N, arguments_key: A} close)… section_close
    named,     // section_open (open N middle A close)… section_close
    tagged,    // section_open (open N name_end (key_open K key_end V value_close)… close)… section_close
    pythonic,  // open [N(K=V, …), …] close, where V is spelled as in Python
    gemma,     // (open N{K:V,…} close)…, where strings stand between quote and quote
    harmony,   // messages with a channel and a recipient, gpt-oss's
  };
  std::string_view name = {};  // for people, such as "hermes"
  kind how = kind::object;
  std::string_view section_open = {}, section_close = {};  // around all calls; empty: none
  std::string_view open = {}, close = {};                  // around each call; of a `list`: around the list
  std::string_view between = {};                           // calls; of a list: between its items

  // object
  std::string_view name_key = "name", arguments_key = "arguments";  // an empty name_key: {N: A}
  std::string_view id_key = {};  // the model writes the call's id under this key; empty: no id
  bool list = false;             // the calls are the items of one JSON array
  // Calls have no mark of their own: a call is a whole answer that is such an object.
  bool bare = false;
  std::string_view open_too = {};  // another spelling of `open`

  // named
  std::string_view name_prefix = {};  // before N; not part of the name
  std::string_view id_end = {};       // the id stands between `open` and this
  std::string_view id_open = {};      // behind N the id may stand, between this and `middle`
  std::string_view middle = {};
  bool counted = false;  // N is followed by ":" and the number of the call; all of it is the id (Kimi)

  // tagged
  std::string_view name_end = {}, key_open = {}, key_end = {}, value_close = {};
  // Between K and key_end stands string="true" or string="false": whether V is a string (DeepSeek V3.2).
  bool says_string = false;
  bool cdata = false;        // V may stand between <![CDATA[ and ]]>
  bool value_lines = false;  // V stands on lines of its own: one line feed at each end is not part of it

  // gemma
  std::string_view quote = {};
};

// Where reasoning stands. Both empty: the model writes none that can be told from its answer.
struct reasoning_format {
  std::string open, close;  // with the white space that the template writes
};

// Messages inside one answer (gpt-oss, Muse Glimmer): a header says whom the text behind it is for.
enum class envelope : std::uint8_t {
  none,
  harmony,     // <|channel|>analysis<|message|>…<|end|><|start|>assistant…
  recipients,  // to=self<|message|>…<|eom|><|start|>assistant to=…
};

struct answer_format {
  call_format calls;  // of the table; its name is empty where the model has no known format
  reasoning_format reasoning;
  envelope messages = envelope::none;
  // Of the template: it writes the calls of earlier messages; those of a message without content alone; those
  // beside a content that is null alone.
  bool writes_calls = true, calls_alone = false, null_beside_calls = false;

  bool has_calls() const noexcept { return !calls.name.empty(); }
  bool has_reasoning() const noexcept { return !reasoning.close.empty() || messages != envelope::none; }
};

// All known formats, the more particular ones first.
std::span<const call_format> call_formats();
// The format of this name; null: there is none.
const call_format* find_call_format(std::string_view name);

}  // namespace weir::core
