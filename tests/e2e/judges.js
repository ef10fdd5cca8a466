// judges.js — says whether a text is what a JSON Schema asks for, by validators that share no code with the
// server: ajv and @cfworker/json-schema.
import { Validator } from "@cfworker/json-schema";
import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";

// Schemas whose `$schema` is not listed here are not judged. A schema without `$schema` is taken for 2020-12,
// in which older spellings are replaced.
const drafts = {
  "json-schema.org/draft-04/schema": { name: "4", Ajv, old: true },
  "json-schema.org/draft-06/schema": { name: "7", Ajv, old: true },
  "json-schema.org/draft-07/schema": { name: "7", Ajv, old: true },
  "json-schema.org/draft/2019-09/schema": { name: "2019-09", Ajv: Ajv2019 },
  "json-schema.org/draft/2020-12/schema": { name: "2020-12", Ajv: Ajv2020 },
};

function draft_of(schema) {
  const named = schema?.$schema;
  if (named === undefined) return { name: "2020-12", Ajv: Ajv2020, unnamed: true };
  return drafts[String(named).replace(/^https?:\/\//, "").replace(/#$/, "")];
}

const holds_values = new Set(["enum", "const", "default", "examples", "example"]);
const holds_schemas_by_name = new Set([
  "properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies",
]);

const is_object = (x) => typeof x === "object" && x !== null && !Array.isArray(x);

/** A copy of the schema, with `change` applied to each schema in it. */
function changed(schema, change) {
  if (Array.isArray(schema)) return schema.map((s) => changed(s, change));
  if (!is_object(schema)) return schema;
  const inner = (key, value) => {
    if (holds_values.has(key)) return value;
    if (!holds_schemas_by_name.has(key) || !is_object(value)) return changed(value, change);
    return Object.fromEntries(Object.entries(value).map(([name, s]) => [name, changed(s, change)]));
  };
  return change(Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, inner(key, value)])));
}

// Replaces the exclusive bounds of draft 4, which are booleans, by numbers.
function with_bounds_as_numbers(s) {
  for (const [exclusive, bound] of [["exclusiveMinimum", "minimum"], ["exclusiveMaximum", "maximum"]]) {
    if (typeof s[exclusive] !== "boolean") continue;
    const is_exclusive = s[exclusive] && bound in s;
    delete s[exclusive];
    if (!is_exclusive) continue;
    s[exclusive] = s[bound];
    delete s[bound];
  }
  return s;
}

// Replaces older spellings by those of 2020-12.
function in_new_spelling(s) {
  if (Array.isArray(s.items)) {
    s.prefixItems = s.items;
    delete s.items;
    if (s.additionalItems !== undefined) s.items = s.additionalItems;
  }
  delete s.additionalItems;
  return with_bounds_as_numbers(s);
}

// Removes the keywords beside `$ref`: ajv asserts them, and the old drafts ignore them.
function without_siblings_of_ref(s) {
  if (typeof s.$ref !== "string") return s;
  const kept = ["$ref", "definitions", "$defs"].filter((key) => key in s);
  return Object.fromEntries(kept.map((key) => [key, s[key]]));
}

function with_dollar_id(s) {
  if (typeof s.id === "string" && !("$id" in s)) s.$id = s.id;
  delete s.id;
  return s;
}

function for_ajv(schema, draft) {
  if (!draft.old) return schema;
  return changed(schema, (s) => {
    const plain = without_siblings_of_ref(with_bounds_as_numbers(s));
    return draft.name === "4" ? with_dollar_id(plain) : plain;
  });
}

// Formats that @cfworker/json-schema judges otherwise than the standard: `url` is no format of the standard,
// a `uri` may have nothing behind its scheme (RFC 3986), and an `email` any length (RFC 5321, 4.1.2). The
// server does not enforce `regex` (docs/structured.md).
const formats_of_its_own = new Set(["url", "uri", "email", "regex"]);

// Throws if a pattern is invalid with the flag u; the validator itself would notice only at some value.
function for_cfworker(schema) {
  return changed(schema, (s) => {
    const named = is_object(s.patternProperties) ? Object.keys(s.patternProperties) : [];
    const patterns = [s.pattern, ...named];
    for (const pattern of patterns) if (typeof pattern === "string") new RegExp(pattern, "u");
    if (formats_of_its_own.has(s.format)) delete s.format;
    return s;
  });
}

function ajv_of(schema, draft, unicodeRegExp) {
  const ajv = new draft.Ajv({
    strict: false, validateFormats: false, validateSchema: false, logger: false, unicodeRegExp,
    addUsedSchema: false,
  });
  const copy = for_ajv(schema, draft);
  if (is_object(copy) && "$schema" in copy) delete copy.$schema;
  return ajv.compile(copy);
}

// Whether formats may decide between branches. Ajv checks no formats here, so it cannot judge such schemas.
function formats_decide(schema) {
  const keywords = new Set();
  changed(schema, (s) => {
    Object.keys(s).forEach((key) => keywords.add(key));
    return s;
  });
  return keywords.has("format") && ["oneOf", "not", "if"].some((key) => keywords.has(key));
}

/** @returns {((value: any) => string | undefined)[]} one function for each judge that can read the schema. It
 *   says what is wrong with a value; undefined: nothing. */
export function judges_of(original) {
  const draft = draft_of(original);
  if (!draft) return [];
  const schema = draft.unnamed ? changed(original, in_new_spelling) : original;
  const judges = [];
  for (const unicode of formats_decide(schema) ? [] : [true, false]) {
    try {
      const validate = ajv_of(schema, draft, unicode);
      judges.push((value) => (validate(value) ? undefined : `ajv: ${JSON.stringify(validate.errors[0])}`));
      break;
    } catch {
      // a pattern that is invalid with the flag u, or a reference that ajv does not resolve
    }
  }
  try {
    const validator = new Validator(for_cfworker(schema), draft.name);
    judges.push((value) => {
      const { valid, errors } = validator.validate(value);
      return valid ? undefined : `cfworker: ${JSON.stringify(errors.at(-1))}`;
    });
  } catch {
    // a pattern that is invalid with the flag u, or an address that is no URL
  }
  return judges;
}

/** The parts of a JSON text outside of its strings, in order. */
export function outside_strings(text) {
  const parts = [];
  const strings = /"(?:[^"\\]|\\.)*"/gsu;
  let from = 0;
  for (const found of text.matchAll(strings)) {
    parts.push(text.slice(from, found.index));
    from = found.index + found[0].length;
  }
  parts.push(text.slice(from));
  return parts;
}

/** Whether a number of the text may change once it is read as a double. */
export function has_number_beyond_doubles(text) {
  return outside_strings(text).some((part) =>
    [...part.matchAll(/-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g)].some(([number]) => {
      const digits = number.replace(/[eE].*/, "").replace(/[-.]/g, "").replace(/^0+/, "");
      return digits.length > 15 || Math.abs(Number(number)) > 1e300 || /[eE].?\d{3}/.test(number);
    }));
}
