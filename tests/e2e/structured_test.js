// Structured output of the model in the box: whatever schema is asked for, the answer is valid. Two
// validators that share no code with the server judge.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Validator } from "@cfworker/json-schema";
import { Ajv2020 } from "ajv/dist/2020.js";
import OpenAI from "openai";

import { start_real } from "./real_server.js";
import { drawn } from "./seeds.js";

const binary = process.env.WEIR_BIN;
const skip = binary ? false : "WEIR_BIN is not set";
// 250 schemas, times the budget of all random tests.
const rounds = Math.max(8, Math.round(250 * Number(process.env.WEIR_TEST_BUDGET ?? 1)));

const task = "Extract name, age (integer) and city as JSON: Ada Berg is 34 years old and lives in Oslo.";

// mulberry32
function random_of(seed) {
  return (below) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const members = {
  name: (random) => [
    { type: "string", minLength: 1, maxLength: 12 },
    { type: "string", pattern: "^[A-Z][a-z]{2,8}( [A-Z][a-z]{2,8})?$" },
    { enum: ["Ada", "Omar", "Zoë"] },
  ][random(3)],
  age: (random) => [
    { type: "integer", minimum: random(30), maximum: 30 + random(60) },
    { type: "integer", minimum: 0, maximum: 130, multipleOf: 2 },
    { type: ["integer", "null"], minimum: 1, maximum: 99 },
  ][random(3)],
  city: (random) => [
    { anyOf: [{ const: "Oslo" }, { type: "string", minLength: 2, maxLength: 6 }] },
    { type: "string", maxLength: 10, not: { pattern: "^O" } },
  ][random(2)],
  born: () => ({ type: "string", format: "date" }),
  tags: (random) => ({
    type: "array", items: { enum: ["a", "b", 3, true] }, minItems: random(3), maxItems: 3 + random(3),
  }),
  inner: (random) => ({
    oneOf: [
      { type: "object", properties: { kind: { const: "x" }, x: { type: "boolean" } },
        required: ["kind", "x"], additionalProperties: false },
      { type: "object",
        properties: { kind: { const: "y" }, y: { type: "number", minimum: -random(9), maximum: 9 } },
        required: ["kind"], additionalProperties: false },
    ],
  }),
};

function schema_of(random) {
  const names = Object.keys(members).sort(() => random(3) - 1).slice(0, 1 + random(5));
  const properties = Object.fromEntries(names.map((n) => [n, members[n](random)]));
  const required = names.filter(() => random(3) > 0);
  return { type: "object", properties, required, additionalProperties: false };
}

describe("structured output", { skip }, () => {
  let server, client;
  before(async () => {
    server = await start_real({ args: [] });
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
  });
  after(() => server?.stop());

  const ask = (schema, more = {}) =>
    client.chat.completions.create({
      model: "rill",
      messages: [{ role: "user", content: task }],
      max_tokens: 400,
      response_format: { type: "json_schema", json_schema: { name: "it", strict: true, schema } },
      ...more,
    });

  test("answers under random schemas are valid by two judges", async () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const one = async (seed) => {
      const schema = schema_of(random_of(seed));
      const answer = await ask(schema, { seed, temperature: seed % 3 });
      const { content } = answer.choices[0].message;
      const said = `seed ${seed}: ${content} for ${JSON.stringify(schema)}`;
      assert.equal(answer.choices[0].finish_reason, "stop", said);
      const value = JSON.parse(content);
      assert.ok(ajv.validate(schema, value), said);
      assert.ok(new Validator(schema, "2020-12").validate(value).valid, said);
    };
    for (let first = 0; first < rounds; first += 8)
      await Promise.all([...Array(Math.min(8, rounds - first)).keys()].map((i) => one(drawn(first + i))));
  });

  test("a free answer is what the schema asks for, where the prompt asks for the same", async () => {
    const schema = {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer" }, city: { type: "string" } },
      required: ["name", "age", "city"],
      additionalProperties: false,
    };
    const answer = await ask(schema, { temperature: 0 });
    const value = JSON.parse(answer.choices[0].message.content);
    assert.deepEqual(value, { name: "Ada Berg", age: 34, city: "Oslo" });
  });

  test("the openai client's streams carry it, and its error names the place", async () => {
    const schema = { type: "array", items: { enum: [1, 2] }, minItems: 3, maxItems: 3 };
    const stream = await ask(schema, { stream: true });
    let text = "";
    for await (const event of stream) text += event.choices[0]?.delta?.content ?? "";
    assert.equal(JSON.parse(text).length, 3);
    await assert.rejects(ask({ properties: { a: { $ref: "#/nowhere" } } }), (e) => {
      assert.equal(e.status, 400);
      return e.param.startsWith("response_format.json_schema.schema/properties/a");
    });
  });
});
