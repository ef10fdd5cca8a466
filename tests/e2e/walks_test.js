// Random walks through the schemas of the test data: every text that is drawn from the masks, token by token,
// is what its schema asks for. The judges share no code with the server. With WEIR_TEST_BUDGET of 10 or more
// every schema is walked under every tokenizer.
//
// What is not judged: texts of schemas that are relaxed because they cannot be enforced, except that the
// texts are JSON. Ajv does not judge formats. A judge does not judge a schema that it cannot read (such as a
// pattern that is invalid with the flag u), or of which it refuses a value that the test data calls valid.
// Where JavaScript may change a number of the text by reading it, a judge's complaint is only counted.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { has_number_beyond_doubles, judges_of, outside_strings } from "./judges.js";

const binary = process.env.WEIR_WALKS;
const data = process.env.TEST_DATA_DIR ?? "../../../shared/data";
const has_data = existsSync(join(data, "schemas"));
const skip = binary ? !has_data && "there is no test data" : "WEIR_WALKS is not set";
const budget = Number(process.env.WEIR_TEST_BUDGET ?? 1);

const few = ["qwen2.5", "llama2"];
const tokenizers = () => (budget < 10 ? few : readdirSync(join(data, "tokenizers")));
const files = () =>
  ["maskbench", "."].flatMap((folder) =>
    readdirSync(join(data, "schemas", folder))
      .filter((name) => name.endsWith(".jsonl") && name !== "json-texts.jsonl")
      .sort().map((name) => join(data, "schemas", folder, name)));

// An empty object or list has two places for white space side by side.
const white_space = {
  compact: /^$/,
  bounded: /^( |\r?\n[ \t]{0,64}){0,2}$/,
  any: /^[ \t\r\n]*$/,
};

// The values that the test data calls valid, by the name of their schema, or else its file and line.
const valid_examples = new Map();
function read_examples() {
  for (const file of files())
    readFileSync(file, "utf8").split("\n").forEach((line, i) => {
      if (!line) return;
      const { name, tests = [] } = JSON.parse(line);
      const valid = tests.filter((example) => example.valid).map(({ data }) => data);
      valid_examples.set(name ?? `${basename(file)}:${i + 1}`, valid);
    });
}

// Whether the judge refuses the value, or throws, as it does at a reference that it cannot resolve.
function refuses(judge, value) {
  try {
    return judge(value) !== undefined;
  } catch {
    return true;
  }
}

// Schemas of which a judge refuses a valid example, such as a $dynamicRef that ajv resolves otherwise.
const misjudged = new Set();
// Schemas that no judge is left for.
const unjudged = new Set();
function judges_for({ name, schema }) {
  return judges_of(schema).filter((judge) => {
    const wrong = valid_examples.get(name).some((value) => refuses(judge, value));
    if (wrong) misjudged.add(name);
    return !wrong;
  });
}

function complaints(walked) {
  if (walked.fault) return [walked.fault];
  // Some tokenizers put a space before every text.
  const text = walked.text.replace(/^ /, "");
  for (const part of outside_strings(text))
    for (const [space] of part.matchAll(/[ \t\r\n]+/g))
      if (!white_space[walked.space].test(space)) return [`white space ${JSON.stringify(space)}`];
  const value = JSON.parse(text);
  if (walked.relaxed) return [];
  const judges = judges_for(walked);
  if (judges.length === 0) {
    unjudged.add(walked.name);
    return [];
  }
  const found = judges.map((judge) => judge(value)).filter(Boolean);
  if (found.length > 0 && has_number_beyond_doubles(text)) {
    beyond_doubles += 1;
    return [];
  }
  return found;
}

let beyond_doubles = 0;

test("texts drawn at random are what their schemas ask for, by two judges", { skip }, async () => {
  const share = budget < 10 ? 40 : 1000;
  let texts = 0;
  read_examples();
  for (const name of tokenizers()) {
    const args = [join(data, "tokenizers", name), "1", `${share}`, ...files()];
    const { stdout } = await promisify(execFile)(binary, args, { maxBuffer: 2 ** 30 });
    for (const line of stdout.split("\n").filter(Boolean)) {
      const walked = JSON.parse(line);
      if (walked.refused) continue;
      texts += 1;
      const schema = JSON.stringify(walked.schema);
      const said = `${name}, ${walked.name}: ${walked.text?.slice(0, 2000)} for ${schema}`;
      assert.deepEqual(complaints(walked), [], said);
    }
  }
  assert.ok(texts > 100, `${texts} texts`);
  for (const left_out of [misjudged, unjudged])
    assert.ok(left_out.size <= valid_examples.size / 50, [...left_out].join(", "));
  assert.ok(beyond_doubles <= texts / 100, `${beyond_doubles} of ${texts} texts are beyond doubles`);
});

test("both judges find what is wrong, in old and new spellings", () => {
  const below_five = { maximum: 5, exclusiveMaximum: true };
  const old = { $schema: "http://json-schema.org/draft-04/schema#", ...below_five };
  const listed = { items: [{ type: "null" }], additionalItems: false };
  for (const [schema, right, wrong] of [
    [old, 4, 5], [below_five, 4, 5], [listed, [null], [null, null]],
    [{ properties: { a: { pattern: "^x" } } }, { a: "xy" }, { a: "yx" }],
  ]) {
    const judges = judges_of(schema);
    assert.equal(judges.length, 2);
    for (const judge of judges) assert.deepEqual([judge(right), !judge(wrong)], [undefined, false]);
  }
});
