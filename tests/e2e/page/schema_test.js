// A schema that the answer must follow: the box, the mark of the answer, what the server refuses.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { load_module } from "../fake_server.js";
import { answered, body, fake, looks, no_browser, no_real, scripted, send, set, shot, state } from "./kit.js";
import { toggle, turns, visit } from "./kit.js";

const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
const mark = (page) => page.locator("#schema-mark").textContent();
const note = (page) => page.locator("#schema-note").textContent();
const turn_mark = (page) => turns(page, "assistant").last().locator(".mark");
const write = (page, value) => page.getByLabel("JSON schema that the answer must follow").fill(value);

test("a text that can still become JSON", async (t) => {
  const { JsonPrefix } = await load_module("json_prefix.js");
  const broken = (text) => {
    const prefix = new JsonPrefix();
    for (const c of text) prefix.feed(c);
    const at_once = new JsonPrefix();
    at_once.feed(text);
    assert.equal(prefix.broken, at_once.broken, text);
    return prefix.broken;
  };
  const whole = [
    '{"a": [1, -2.5e+3, {"b": null}], "c": "x\\u00e9\\n"}', " [true , false] ", '"a"', "0", "-0.1E5", "[]",
    "{ }",
  ];
  for (const text of whole)
    await t.test(text, () => {
      JSON.parse(text);
      for (let n = 0; n <= text.length; n++) assert.equal(broken(text.slice(0, n)), false, text.slice(0, n));
    });
  for (const text of [
    "x", "{a", "[1,]", "{,", '{"a",', '{"a":1,}', "[1 2", "01", "1.e", "-a", '"\n', '"\\x', '"\\u00g', "tru1",
    "{}x", "1 1", "]", "[}", "{]", "nulll", "+1", ".5", "1}", '{"a":}', "[,", "9".repeat(2000),
  ])
    await t.test(`broken: ${text.slice(0, 20)}`, () => assert.equal(broken(text), true));
});

test("values and schemas", async (t) => {
  const { check } = await load_module("schema_check.js");
  const rows = [
    [{ type: "integer" }, [1, -2, 1e3], [1.5, "1", null]],
    [{ type: ["string", "null"] }, ["", null], [1, {}]],
    [{ enum: [1, { a: [2] }] }, [1, { a: [2] }], [2, { a: [3] }]],
    [{ const: { a: 1, b: 2 } }, [{ b: 2, a: 1 }], [{ a: 1 }]],
    [{ minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, "x"], [0, 3]],
    [{ multipleOf: 3 }, [0, -6], [4]],
    [{ minLength: 2, maxLength: 3 }, ["ab", "äöü", "😀😀"], ["a", "abcd"]],
    [schema, [{ age: 1 }, { age: 1, more: 2 }], [{}, { age: "1" }, []]],
    [{ properties: { a: true }, additionalProperties: false }, [{}, { a: 1 }], [{ b: 1 }]],
    [{ additionalProperties: { type: "null" } }, [{ a: null }], [{ a: 1 }]],
    [{ required: ["constructor"] }, [JSON.parse('{"constructor":1}')], [{}]],
    [{ items: { type: "number" }, minItems: 1, uniqueItems: true }, [[1, 2]], [[], ["a"], [1, 1]]],
    [{ prefixItems: [{ const: 1 }], items: { const: 2 } }, [[], [1], [1, 2, 2]], [[2], [1, 3]]],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
    [{ anyOf: [{ const: 1 }, { const: 2 }] }, [1, 2], [3]],
    [{ oneOf: [{ minimum: 1 }, { maximum: 2 }] }, [0, 3], [1, 2]],
    [{ not: { const: 1 } }, [2], [1]],
    [{ if: { const: 1 }, then: false, else: { type: "string" } }, ["a"], [1, 2]],
    [{ $ref: "#/$defs/a~1b", $defs: { "a/b": { const: 1 } } }, [1], [2]],
    [{ type: "array", items: { $ref: "#" } }, [[], [[], [[]]]], [[1]]],
    [false, [], [1]],
  ];
  for (const [of, right, wrong] of rows)
    await t.test(JSON.stringify(of), () => {
      for (const value of right) assert.deepEqual(check(of, value), { error: null, unchecked: [] });
      for (const value of wrong) assert.ok(check(of, value).error, JSON.stringify(value));
    });
  assert.match(check(schema, { age: "1" }).error, /^\/age must be integer$/);
  for (const [of, name] of [
    [{ pattern: "^a" }, "pattern"],
    [{ not: { pattern: "^a" } }, "not"],
    [{ oneOf: [{ format: "date" }] }, "oneOf"],
    [{ $ref: "http://a.example/" }, "$ref"],
    [{ minimum: 5, exclusiveMinimum: true }, "a bound that is no number"],
    [{ allOf: 1 }, "a schema of this form, or nested this deeply"],
    [{ $ref: "#" }, "a schema of this form, or nested this deeply"],
  ])
    await t.test(`not checked: ${name}`, () =>
      assert.deepEqual(check(of, "x"), { error: null, unchecked: [name] }));
});

describe("the page's schema", { skip: no_browser }, () => {
  const say = (...deltas) => () => ({ pieces: deltas.map((delta) => ({ delta })), gap_ms: () => 1 });

  test("the mark follows the answer: unfinished, then valid, and it is kept", async (t) => {
    const server = await fake(t, { plan: say('{"a', 'ge": ', "31}"), hold_at: 2 });
    const page = await visit(t, server);
    await toggle(page, "Schema").check();
    await write(page, JSON.stringify(schema));
    await send(page, "hello");
    await page.getByText("Answer: unfinished").waitFor();
    server.release();
    await answered(page);
    assert.equal(await mark(page), "Answer: valid");
    assert.equal(await turn_mark(page).textContent(), "schema: valid");
    const [{ json_schema }] = server.received.filter(({ type }) => type === "response.create");
    assert.deepEqual(json_schema, schema);
    await page.reload();
    await page.locator("#chats button").first().click();
    assert.equal(await turn_mark(page).textContent(), "schema: valid");
    assert.ok(await toggle(page, "Schema").isChecked());
    assert.equal(await page.locator("#schema").inputValue(), JSON.stringify(schema));
  });

  for (const [what, text, words] of [
    ["no JSON", "Sure: {", /^Answer: invalid: the answer is not JSON$/],
    ["another value", '{"age": "old"}', /^Answer: invalid: \/age must be integer$/],
    ["half of it", '{"age": 3', /^Answer: unfinished: the answer ended too early$/],
  ])
    test(`a server that does not keep to the schema: ${what}`, async (t) => {
      const page = await visit(t, await fake(t, { plan: say(text) }));
      await toggle(page, "Schema").check();
      await write(page, JSON.stringify(schema));
      await send(page, "hello");
      await answered(page);
      assert.match(await mark(page), words);
    });

  test("what is no schema is said while it is written, and nothing is sent", async (t) => {
    const server = await fake(t, { plan: say("x") });
    const page = await visit(t, server);
    await toggle(page, "Schema").check();
    assert.equal(await note(page), "");
    await write(page, "{");
    assert.match(await note(page), /^This is not JSON: /);
    await write(page, "[]");
    assert.equal(await note(page), "A schema is a JSON object.");
    await send(page, "hello");
    assert.equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "hello");
    assert.equal(await page.evaluate(() => document.activeElement.id), "schema");
    assert.equal(server.received.filter(({ type }) => type === "response.create").length, 0);
    await toggle(page, "Schema").uncheck();
    await send(page, "hello");
    await answered(page);
    assert.equal(await page.locator("#schema-box").isVisible(), false);
  });
});

describe("the page's schema, on the real server", { skip: no_real }, () => {
  const script = [{ say: '{"name": "Mara", "age": 31}' }];

  for (const [name, look] of Object.entries(looks))
    test(`the answer follows the schema, ${name}`, async (t) => {
      const page = await visit(t, await scripted(t, script), look);
      await set(page, { "Show text": "live" });
      await toggle(page, "Schema").check();
      await send(page, "Mara is 31 years old.");
      await answered(page);
      assert.equal(await body(page).innerText(), '{"name": "Mara", "age": 31}');
      assert.equal(await mark(page), "Answer: valid");
      await shot(page, `schema-${name.replace(", ", "-")}`);
      const { width } = page.viewportSize();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    });

  test("what the server refuses stands beside the box, and the conversation goes on", async (t) => {
    const page = await visit(t, await scripted(t, script));
    await set(page, { "Show text": "live" });
    await toggle(page, "Schema").check();
    await write(page, '{"type": "objekt"}');
    await send(page, "hello");
    await answered(page);
    assert.match(await note(page), /^\/type: type "objekt" is not one of/);
    assert.equal(await page.locator("#schema").getAttribute("aria-invalid"), "true");
    assert.match(await state(page).textContent(), /^type "objekt"/);
    await shot(page, "schema-refused");
    await write(page, '{"type": "object", "properties": {"a": {"type": "string", "format": "unheard-of"}}}');
    await send(page, "hello");
    await answered(page);
    assert.match(await note(page), /^\/properties\/a\/format: format "unheard-of" is not known/);
    assert.equal(await mark(page), "Answer: valid");
  });
});
