#include "core/grammar/schema/formats.h"

#include <algorithm>
#include <map>

namespace weir::core::grammar {
namespace {

std::string any_of(std::initializer_list<std::string> alternatives) {
  std::string out = "(?:";
  for (const std::string& a : alternatives) out += (out.size() > 3 ? "|" : "") + a;
  return out + ")";
}

std::string date() {
  const std::string leap_year =
      R"((?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00))";
  return any_of({R"([0-9]{4}-(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01]))",
                 R"([0-9]{4}-(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30))",
                 R"([0-9]{4}-02-(?:0[1-9]|1[0-9]|2[0-8]))", leap_year + "-02-29"});
}

std::string time() {
  const std::string offset = R"((?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]))";
  return any_of({R"((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?)" + offset,
                 R"(23:59:60(?:\.[0-9]+)?(?:[Zz]|[+-]00:00))"});
}

std::string duration() {
  const std::string times = R"(T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))";
  const std::string dates = R"((?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D))";
  return "P(?:[0-9]+W|" + dates + "(?:" + times + ")?|" + times + ")";
}

// Labels with hyphens in their third and fourth place are left out: what follows `xn--` has to be valid
// Punycode of valid characters, which is no regular language.
std::string host_name() {
  const std::string a = "[A-Za-z0-9]", x = "[A-Za-z0-9-]";
  const std::string tail = x + "{0,58}" + a;
  const std::string label = a + "(?:" + x + "?" + a + "|" + x + "(?:" + a + a + "|-" + a + ")(?:" + tail +
                            ")?|" + x + a + "-" + tail + ")?";
  return label + "(?:\\." + label + ")*";
}

std::string ipv4() {
  const std::string part = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return part + "(?:\\." + part + "){3}";
}

std::string ipv6() {
  const std::string h = "[0-9A-Fa-f]{1,4}";
  const std::string last = "(?:" + h + ":" + h + "|" + ipv4() + ")";
  return any_of(
      {"(?:" + h + ":){6}" + last, "::(?:" + h + ":){5}" + last, "(?:" + h + ")?::(?:" + h + ":){4}" + last,
       "(?:(?:" + h + ":){0,1}" + h + ")?::(?:" + h + ":){3}" + last,
       "(?:(?:" + h + ":){0,2}" + h + ")?::(?:" + h + ":){2}" + last,
       "(?:(?:" + h + ":){0,3}" + h + ")?::" + h + ":" + last, "(?:(?:" + h + ":){0,4}" + h + ")?::" + last,
       "(?:(?:" + h + ":){0,5}" + h + ")?::" + h, "(?:(?:" + h + ":){0,6}" + h + ")?::"});
}

std::string email() {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  const std::string quoted = R"("(?:[ !#-\[\]-~]|\\[ -~])*")";
  return "(?:" + atom + "(?:\\." + atom + ")*|" + quoted + ")@(?:" + host_name() + "|\\[" + ipv4() +
         "\\]|\\[IPv6:" + ipv6() + "\\])";
}

struct uri_pieces {
  std::string scheme, authority, rootless, absolute_path, noscheme, tail;
};

uri_pieces pieces_of_uri() {
  const std::string escape = "%[0-9A-Fa-f]{2}";
  const std::string pchar = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|" + escape + ")";
  const std::string no_colon = "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|" + escape + ")";
  const std::string user = "(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|" + escape + ")*@)?";
  const std::string name = "(?:[A-Za-z0-9._~!$&'()*+,;=-]|" + escape + ")*";
  const std::string future = "[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+";
  const std::string host = "(?:\\[(?:" + ipv6() + "|" + future + ")\\]|" + name + ")";
  uri_pieces p;
  p.scheme = "[A-Za-z][A-Za-z0-9+.-]*";
  p.authority = "//" + user + host + "(?::[0-9]*)?(?:/" + pchar + "*)*";
  p.absolute_path = "/(?:" + pchar + "+(?:/" + pchar + "*)*)?";
  p.rootless = pchar + "+(?:/" + pchar + "*)*";
  p.noscheme = no_colon + "+(?:/" + pchar + "*)*";
  p.tail = "(?:\\?(?:" + pchar + "|[/?])*)?(?:#(?:" + pchar + "|[/?])*)?";
  return p;
}

std::string uri() {
  const uri_pieces p = pieces_of_uri();
  return p.scheme + ":" + any_of({p.authority, p.absolute_path, p.rootless, ""}) + p.tail;
}

std::string uri_reference() {
  const uri_pieces p = pieces_of_uri();
  return any_of({uri(), any_of({p.authority, p.absolute_path, p.noscheme, ""}) + p.tail});
}

const std::map<std::string, std::string, std::less<>>& expressions() {
  static const std::map<std::string, std::string, std::less<>> all = [] {
    const std::string pointer = "(?:/(?:[^~/]|~[01])*)*";
    std::map<std::string, std::string, std::less<>> m{
        {"date", date()},
        {"time", time()},
        {"date-time", date() + "[Tt]" + time()},
        {"duration", duration()},
        {"email", email()},
        {"hostname", host_name()},
        {"ipv4", ipv4()},
        {"ipv6", ipv6()},
        {"uri", uri()},
        {"uri-reference", uri_reference()},
        {"uuid", "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
        {"json-pointer", pointer},
        {"relative-json-pointer", "(?:0|[1-9][0-9]*)(?:#|" + pointer + ")"},
        {"byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"},
    };
    m["ip-address"] = m["ipv4"];  // draft 4's names
    m["host-name"] = m["hostname"];
    m["base64"] = m["byte"];
    return m;
  }();
  return all;
}

constexpr std::string_view annotations[] = {"int32",    "int64",  "float", "double",
                                            "password", "binary", "regex"};
constexpr std::string_view missing[] = {"iri", "iri-reference", "uri-template", "idn-hostname", "idn-email"};

}  // namespace

format_use use_of_format(std::string_view name) {
  if (expressions().contains(name)) return format_use::asserted;
  if (std::ranges::find(annotations, name) != std::end(annotations)) return format_use::annotation;
  return std::ranges::find(missing, name) != std::end(missing) ? format_use::missing : format_use::unknown;
}

std::vector<std::string> formats_of(format_use use) {
  std::vector<std::string> out;
  if (use == format_use::annotation) out.assign(std::begin(annotations), std::end(annotations));
  if (use == format_use::missing) out.assign(std::begin(missing), std::end(missing));
  if (use == format_use::asserted)
    for (const auto& [name, _] : expressions()) out.push_back(name);
  return out;
}

std::uint32_t format_max_length(std::string_view name) {
  return name == "hostname" || name == "host-name" ? 253 : unbounded;
}

const std::string& format_expression(std::string_view name) { return expressions().find(name)->second; }

}  // namespace weir::core::grammar
