// schema_check.js — whether a value is as a JSON schema asks. What this page does not check is named, and not
// taken for right or wrong: the server enforces more (docs/structured.md).
const kinds = {
  array: Array.isArray,
  boolean: (value) => typeof value === "boolean",
  integer: Number.isInteger,
  null: (value) => value === null,
  number: (value) => typeof value === "number",
  object: is_object,
  string: (value) => typeof value === "string",
};
const notes = new Set(
  `$schema $id id $comment $defs definitions title description default examples deprecated readOnly writeOnly
  then else`.split(/\s+/),
);

/** @returns {{error: string | null, unchecked: string[]}} error: what is wrong first, with its place */
export function check(schema, value) {
  const unchecked = new Set();
  try {
    return { error: new Check(schema, unchecked).test(schema, value, ""), unchecked: [...unchecked] };
  } catch {
    return { error: null, unchecked: ["a schema of this form, or nested this deeply"] };
  }
}

function is_object(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

class Check {
  #root;
  #unchecked;

  constructor(root, unchecked) {
    this.#root = root;
    this.#unchecked = unchecked;
  }

  /** @returns {string | null} what is wrong, with the place in the value as a JSON pointer */
  test(schema, value, at) {
    if (schema === true) return null;
    if (schema === false) return `${place(at)} is not allowed`;
    if (!is_object(schema)) return this.#skip("a schema that is none");
    for (const [keyword, asked] of Object.entries(schema)) {
      if (notes.has(keyword)) continue;
      const test = Object.hasOwn(rules, keyword) ? rules[keyword] : null;
      const wrong = test ? test({ check: this, schema, asked, value, at }) : this.#skip(keyword);
      if (wrong) return wrong;
    }
    return null;
  }

  #skip(what) {
    this.#unchecked.add(what);
    return null;
  }

  skip(keyword) {
    return this.#skip(keyword);
  }

  /** Whether the value fits; undefined: part of the schema is not checked here. */
  fits(schema, value) {
    const unchecked = new Set();
    const wrong = new Check(this.#root, unchecked).test(schema, value, "");
    return unchecked.size > 0 ? undefined : wrong === null;
  }

  /** The schema at a JSON pointer of the document; undefined: there is none. */
  find(reference) {
    if (reference === "#") return this.#root;
    if (!reference.startsWith("#/")) return undefined;
    let found = this.#root;
    for (const step of decodeURIComponent(reference.slice(2)).split("/")) {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (found === null || typeof found !== "object" || !Object.hasOwn(found, name)) return undefined;
      found = found[name];
    }
    return found;
  }
}

const place = (at) => (at === "" ? "the answer" : at);
const said = (value) => JSON.stringify(value).slice(0, 60);
const length_of = (text) => [...text].length;
const same = (a, b) => canonical(a) === canonical(b);
const canonical = (value) =>
  JSON.stringify(value, (_, one) =>
    is_object(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one,
  );

/** A rule for values of one kind: `holds(value, asked)`, else `words(asked)` say what they must be. */
function bound(kind, holds, words) {
  return ({ check, asked, value, at }) => {
    if (typeof asked !== "number") return check.skip("a bound that is no number");
    return !kinds[kind](value) || holds(value, asked) ? null : `${place(at)} must ${words(asked)}`;
  };
}

/** How many of the schemas fit; undefined: it is not known of all. */
function fitting({ check, asked, value }) {
  const all = asked.map((schema) => check.fits(schema, value));
  return all.includes(undefined) ? undefined : all.filter(Boolean).length;
}

const rules = {
  type: ({ asked, value, at }) => {
    const names = [asked].flat();
    return names.some((name) => kinds[name]?.(value)) ? null : `${place(at)} must be ${names.join(" or ")}`;
  },
  enum: ({ asked, value, at }) =>
    asked.some((one) => same(one, value)) ? null : `${place(at)} must be one of ${said(asked)}`,
  const: ({ asked, value, at }) => (same(asked, value) ? null : `${place(at)} must be ${said(asked)}`),

  minimum: bound("number", (value, least) => value >= least, (least) => `be at least ${least}`),
  maximum: bound("number", (value, most) => value <= most, (most) => `be at most ${most}`),
  exclusiveMinimum: bound("number", (value, less) => value > less, (less) => `be more than ${less}`),
  exclusiveMaximum: bound("number", (value, more) => value < more, (more) => `be less than ${more}`),
  multipleOf: ({ check, asked, value, at }) => {
    if (!Number.isInteger(asked) || (typeof value === "number" && !Number.isInteger(value)))
      return check.skip("multipleOf");
    const fits = typeof value !== "number" || value % asked === 0;
    return fits ? null : `${place(at)} must be a multiple of ${asked}`;
  },
  minLength: bound("string", (text, n) => length_of(text) >= n, (n) => `have ${n} characters or more`),
  maxLength: bound("string", (text, n) => length_of(text) <= n, (n) => `have ${n} characters or fewer`),
  minItems: bound("array", (list, n) => list.length >= n, (n) => `have ${n} items or more`),
  maxItems: bound("array", (list, n) => list.length <= n, (n) => `have ${n} items or fewer`),
  minProperties: bound("object", (o, n) => Object.keys(o).length >= n, (n) => `have ${n} members or more`),
  maxProperties: bound("object", (o, n) => Object.keys(o).length <= n, (n) => `have ${n} members or fewer`),
  uniqueItems: ({ asked, value, at }) => {
    if (!asked || !Array.isArray(value)) return null;
    return new Set(value.map(canonical)).size === value.length ? null : `${place(at)} has an item twice`;
  },

  required: ({ asked, value, at }) => {
    const missing = is_object(value) && asked.find((name) => !Object.hasOwn(value, name));
    return missing === undefined || missing === false ? null : `${at}/${missing} is missing`;
  },
  properties: ({ check, asked, value, at }) => {
    if (!is_object(value)) return null;
    for (const [name, schema] of Object.entries(asked)) {
      const wrong = Object.hasOwn(value, name) ? check.test(schema, value[name], `${at}/${name}`) : null;
      if (wrong) return wrong;
    }
    return null;
  },
  additionalProperties: ({ check, schema, asked, value, at }) => {
    if (!is_object(value)) return null;
    if (schema.patternProperties) return check.skip("additionalProperties");
    for (const [name, member] of Object.entries(value)) {
      const declared = Object.hasOwn(schema.properties ?? {}, name);
      const wrong = declared ? null : check.test(asked, member, `${at}/${name}`);
      if (wrong) return wrong;
    }
    return null;
  },
  prefixItems: ({ check, asked, value, at }) => {
    if (!Array.isArray(value)) return null;
    for (const [i, schema] of asked.entries()) {
      const wrong = i < value.length ? check.test(schema, value[i], `${at}/${i}`) : null;
      if (wrong) return wrong;
    }
    return null;
  },
  items: ({ check, schema, asked, value, at }) => {
    if (Array.isArray(asked)) return check.skip("items");
    if (!Array.isArray(value)) return null;
    for (let i = schema.prefixItems?.length ?? 0; i < value.length; i++) {
      const wrong = check.test(asked, value[i], `${at}/${i}`);
      if (wrong) return wrong;
    }
    return null;
  },

  allOf: ({ check, asked, value, at }) => {
    for (const schema of asked) {
      const wrong = check.test(schema, value, at);
      if (wrong) return wrong;
    }
    return null;
  },
  anyOf: (it) => {
    const all = it.asked.map((schema) => it.check.fits(schema, it.value));
    if (all.includes(true)) return null;
    return all.includes(undefined) ? it.check.skip("anyOf") : `${place(it.at)} fits no schema of anyOf`;
  },
  oneOf: (it) => {
    const n = fitting(it);
    if (n === undefined) return it.check.skip("oneOf");
    return n === 1 ? null : `${place(it.at)} fits ${n} schemas of oneOf`;
  },
  not: ({ check, asked, value, at }) => {
    const fits = check.fits(asked, value);
    if (fits === undefined) return check.skip("not");
    return fits ? `${place(at)} is what it must not be` : null;
  },
  if: ({ check, schema, asked, value, at }) => {
    const fits = check.fits(asked, value);
    if (fits === undefined) return check.skip("if");
    return check.test((fits ? schema.then : schema.else) ?? true, value, at);
  },
  $ref: ({ check, asked, value, at }) => {
    const found = check.find(asked);
    return found === undefined ? check.skip("$ref") : check.test(found, value, at);
  },
};
