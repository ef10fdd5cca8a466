// extras.js — what a chat asks for beside its messages: tools, and a schema that the answer must follow.
import { JsonPrefix } from "./json_prefix.js";
import { check } from "./schema_check.js";
import { tools } from "./tools.js";

const $ = (id) => document.getElementById(id);
const place = "weir.extras";
const example = `{
  "type": "object",
  "properties": {
    "name": { "type": "string" },
    "age": { "type": "integer" }
  },
  "required": ["name", "age"],
  "additionalProperties": false
}`;

/** Shows what was set before, and keeps what is set from now on. */
export function offer_extras() {
  const kept = JSON.parse(localStorage.getItem(place) ?? "{}");
  $("tools-on").checked = kept.tools === true;
  $("schema-on").checked = kept.schema_on === true;
  $("schema").value = kept.schema ?? example;
  $("tools-on").onchange = () => {
    tell_tools("");
    keep();
  };
  $("schema-on").onchange = () => {
    keep();
    if ($("schema-on").checked) show_box();
  };
  $("schema").oninput = keep;
  $("model").addEventListener("change", () => tell_tools(""));
  show();
}

function keep() {
  const now = { tools: $("tools-on").checked, schema_on: $("schema-on").checked, schema: $("schema").value };
  localStorage.setItem(place, JSON.stringify(now));
  mark_schema("");
  show();
}

function show_box() {
  $("schema").focus();
  $("schema").setSelectionRange(0, 0);
  $("schema").scrollTop = 0;
}

function show() {
  $("schema-box").hidden = !$("schema-on").checked;
  tell_schema($("schema-on").checked ? wrong_schema() : "", true);
}

/** The fields of a request. Reasoning comes beside the answer whatever is switched on. */
export function extras() {
  const fields = { reasoning: "separate" };
  if ($("tools-on").checked) fields.tools = tools;
  if ($("schema-on").checked) fields.json_schema = JSON.parse($("schema").value);
  return fields;
}

/** Whether a request can be made of what is set; the page says why not. */
export function extras_are_right() {
  const wrong = $("schema-on").checked ? wrong_schema() : "";
  if (wrong) $("schema").focus();
  return wrong === "";
}

/** Empty: the box has a schema, as far as this page can tell. */
function wrong_schema() {
  try {
    const schema = JSON.parse($("schema").value);
    const is_one = typeof schema === "boolean" || (schema !== null && typeof schema === "object");
    return is_one && !Array.isArray(schema) ? "" : "A schema is a JSON object.";
  } catch ({ message }) {
    return `This is not JSON: ${message}`;
  }
}

/** What the server says when it takes a request: parts of the schema that it does not enforce. */
export function took_request({ warnings = [] }) {
  const of_schema = warnings.filter(({ param }) => is_of_schema(param));
  if ($("schema-on").checked) tell_schema(of_schema.map(at_place).join("; "), false);
}

/**
 * What the server says when it refuses a request.
 * @param {{param?: string, message?: string}} error
 * @returns {boolean} whether the same can be asked again: the tools were refused, and are off now
 */
export function refused_request({ param = "", message = "" }) {
  if (/^json_schema\b/.test(param)) tell_schema(at_place({ param, message }), true);
  if (!/^tools\b/.test(param) || !$("tools-on").checked) return false;
  $("tools-on").checked = false;
  keep();
  tell_tools(`Switched off, because this model cannot be given tools: ${message}`);
  return true;
}

/** A `param` is the place in the schema, a JSON pointer, with the field's name in front of it or without. */
const is_of_schema = (param) => /^(json_schema)?(\/|$)/.test(param);

function at_place({ param, message }) {
  const pointer = param.replace(/^json_schema/, "");
  return pointer === "" ? message : `${pointer}: ${message}`;
}

function tell_tools(words) {
  $("tools-note").textContent = words;
}

function tell_schema(words, failed) {
  if ($("schema-note").textContent !== words) $("schema-note").textContent = words;
  $("schema-note").classList.toggle("failed", failed && words !== "");
  $("schema").setAttribute("aria-invalid", String(failed && words !== ""));
}

// ---- whether the answer follows the schema

/** Judges one answer while it grows. */
export class Judge {
  #schema;
  #prefix = new JsonPrefix();
  #seen = 0;

  /** @param {unknown} schema */
  constructor(schema) {
    this.#schema = schema;
  }

  /**
   * @param {string} text the answer so far @param {boolean} over nothing follows
   * @returns {{mark: "valid" | "invalid" | "unfinished", words: string}}
   */
  judge(text, over) {
    this.#prefix.feed(text.slice(this.#seen));
    this.#seen = text.length;
    if (this.#prefix.broken) return { mark: "invalid", words: "invalid: the answer is not JSON" };
    if (!over) return { mark: "unfinished", words: "unfinished" };
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      return { mark: "unfinished", words: "unfinished: the answer ended too early" };
    }
    const { error, unchecked } = check(this.#schema, value);
    if (error) return { mark: "invalid", words: `invalid: ${error}` };
    const but = unchecked.length > 0 ? `, as far as this page checks (not ${unchecked.join(", ")})` : "";
    return { mark: "valid", words: `valid${but}` };
  }
}

/** Shows, beside the schema, how the answer stands to it. No words: there is no answer. */
export function mark_schema(words, mark = "") {
  const element = $("schema-mark");
  element.dataset.mark = mark;
  const all = words && `Answer: ${words}`;
  if (element.textContent !== all) element.textContent = all;
}
