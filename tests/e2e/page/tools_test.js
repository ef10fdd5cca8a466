// Tools that the page offers the model: their calls, their results, and models that know no calls.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { load_module } from "../fake_server.js";
import { answered, body, button, call, connected, fake, looks, no_browser, no_real, real } from "./kit.js";
import { scripted, send, set, shot, state, toggle, turns, visit } from "./kit.js";

const done = (result) => `<tool_response>${result}</tool_response><|im_end|>\n<|im_start|>assistant`;
const script = [
  { when: done("1480"), say: "<think>\nI have it.\n</think>\n\nIt is 1480." },
  { when: "(Europe/London)", say: "It is late." },
  { when: done("Error: There is no time zone of the name Mars."), say: "I do not know Mars." },
  { when: "Error", say: "That went wrong." },
  { when: "What time", say: call("clock", { time_zone: "Europe/London" }) },
  { when: "on Mars", say: call("clock", { time_zone: "Mars" }) },
  { when: "wrong", say: call("calculator", { expression: "1 +" }) },
  { when: "for ever", say: call("calculator", { expression: "1" }) },
  {
    when: "185",
    say:
      "<think>\nA sum.\n</think>\n\nI calculate.\n" +
      call("calculator", { expression: "(128 + 57) * 2^3" }),
  },
  { say: "Hello." },
];
const cards = (page) => turns(page, "assistant").last().locator(".call");
const asked = (server) => server.received.filter(({ type }) => type === "response.create");

test("the calculator", async (t) => {
  const { calculate } = await load_module("calculator.js");
  for (const [expression, value] of [
    ["128 + 57", "185"],
    ["2 + 3 * 4 - 10 / 4", "11.5"],
    ["-2^2", "-4"],
    ["2^3^2", "512"],
    ["2**-1", "0.5"],
    ["0.1 + 0.2", "0.3"],
    ["(1 + 2) × (3 − 1) ÷ 4", "1.5"],
    ["sqrt(2) * SQRT(2)", "2"],
    ["max(1, 2, 3) + min(4, 5)", "7"],
    ["1e3 + .5", "1000.5"],
    ["17 % 5", "2"],
    ["cos(pi)", "-1"],
    ["--1", "1"],
  ])
    await t.test(expression, () => assert.equal(calculate(expression), value));
  for (const [expression, says] of [
    ["", /ends too early/],
    ["1 +", /ends too early/],
    ["1 2", /unexpected: 2/],
    ["(1", /A \) is missing/],
    ["alert(1)", /unexpected: alert/],
    ["constructor", /unexpected: constructor/],
    ["__proto__", /unexpected: _/],
    ["1; 2", /unexpected: ;/],
    ["1/0", /no.*finite|not a finite/],
    ["(".repeat(400), /nested too deeply/],
    ["1+".repeat(300) + "1", /more than 500 characters/],
  ])
    await t.test(`refused: ${expression.slice(0, 20)}`, () =>
      assert.throws(() => calculate(expression), says));
});

describe("the page's tools", { skip: no_browser }, () => {
  test("a request has tools only while the switch is on, and the switch is kept", async (t) => {
    const server = await fake(t, { plan: () => ({ pieces: [{ delta: "x" }], gap_ms: () => 1 }) });
    const page = await visit(t, server);
    await send(page, "one");
    await answered(page);
    await toggle(page, "Tools").focus();
    await page.keyboard.press("Space");
    await send(page, "two");
    await answered(page);
    await page.reload();
    await connected(page);
    assert.ok(await toggle(page, "Tools").isChecked());
    await toggle(page, "Tools").uncheck();
    await send(page, "three");
    await answered(page);
    const names = asked(server).map(({ tools }) => tools?.map((tool) => tool.function.name));
    assert.deepEqual(names, [undefined, ["calculator", "clock"], undefined]);
  });

  const pieces = [
    { part: "arguments", delta: '{"expression":', call: { index: 0, id: "call_1", name: "calculator" } },
    { part: "arguments", delta: ' "1+1"}', call: { index: 0 } },
    { part: "arguments", delta: "{}", call: { index: 1, id: "call_2", name: "nothing" } },
  ];
  const plan = ({ input }) =>
    input.at(-1).role === "tool"
      ? { pieces: [{ part: "text", delta: "Two." }], gap_ms: () => 1 }
      : { pieces, gap_ms: () => 1 };

  test("the results of all calls go back with their ids", async (t) => {
    const server = await fake(t, { plan });
    const page = await visit(t, server);
    await toggle(page, "Tools").check();
    await send(page, "1+1?");
    await answered(page);
    const function_of = (name, text) => ({ name, arguments: text });
    assert.deepEqual(asked(server)[1].input.slice(1), [
      {
        role: "assistant",
        content: "",
        tool_calls: [
          { id: "call_1", type: "function", function: function_of("calculator", '{"expression": "1+1"}') },
          { id: "call_2", type: "function", function: function_of("nothing", "{}") },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "2" },
      { role: "tool", tool_call_id: "call_2", content: "Error: There is no tool of the name nothing." },
    ]);
    assert.equal(await body(page).locator(".prose").innerText(), "Two.");
    assert.equal(await turns(page, "assistant").count(), 1);
  });

  test("an answer that is stopped in the middle of a call runs nothing", async (t) => {
    const server = await fake(t, { plan, hold_at: 1 });
    const page = await visit(t, server);
    await toggle(page, "Tools").check();
    await send(page, "1+1?");
    await cards(page).getByText("The model writes the call").waitFor();
    await button(page, "Stop").click();
    await cards(page).getByText("The call was not run.").waitFor();
    server.release();
    await send(page, "again");
    await answered(page);
    const { input } = asked(server)[1];
    assert.ok(input.every((message) => !message.tool_calls));
  });

  test("an answer that a reload interrupts in the middle of a call runs it", async (t) => {
    const server = await fake(t, { plan, hold_at: 1 });
    const page = await visit(t, server);
    await toggle(page, "Tools").check();
    await send(page, "1+1?");
    await cards(page).getByText("The model writes the call").waitFor();
    await page.reload();
    await connected(page);
    server.release();
    await answered(page);
    await body(page).getByText("Two.").waitFor();
    assert.equal(asked(server).length, 2);
    assert.equal(await cards(page).count(), 2);
  });

  test("tools and a schema together: the answer behind the calls has the mark", async (t) => {
    const server = await fake(t, {
      plan: ({ input }) => ({
        pieces:
          input.at(-1).role === "tool"
            ? [{ part: "text", delta: '{"name": "Mara", ' }, { part: "text", delta: '"age": 31}' }]
            : [{ part: "arguments", delta: "{}", call: { index: 0, id: "a", name: "clock" } }],
        gap_ms: () => 1,
      }),
    });
    const page = await visit(t, server);
    for (const name of ["Tools", "Schema"]) await toggle(page, name).check();
    await send(page, "hello");
    await answered(page);
    assert.ok(asked(server).every(({ tools, json_schema }) => tools && json_schema));
    assert.equal(await page.locator("#schema-mark").textContent(), "Answer: valid");
  });
});

describe("the page's tools, on the real server", { skip: no_real }, () => {
  for (const [name, look] of Object.entries(looks))
    test(`calls are run, shown as cards, and answered, ${name}`, async (t) => {
      const page = await visit(t, await scripted(t, script), look);
      await set(page, { "Show text": "live" });
      await toggle(page, "Tools").check();
      await send(page, "What is 185 times 2^3?");
      await answered(page);
      assert.deepEqual(await body(page).locator(".prose").allInnerTexts(), ["I calculate.", "It is 1480."]);
      assert.equal(await cards(page).locator("b").innerText(), "calculator");
      assert.equal(await cards(page).locator("code").innerText(), '{"expression":"(128 + 57) * 2^3"}');
      assert.equal(await cards(page).locator(".result").innerText(), "1480");
      assert.equal(await body(page).locator(".thought").count(), 2);
      assert.match(await page.locator("#spoken").textContent(), /It is 1480\./);
      await shot(page, `tools-${name.replace(", ", "-")}`);
      await button(page, "New").click();
      await send(page, "What time is it?");
      await answered(page);
      const time = /\d\d:\d\d:\d\d (GMT|BST).*\(Europe\/London\)/;
      assert.match(await cards(page).locator(".result").innerText(), time);
      await button(page, "New").click();
      await send(page, "And on Mars?");
      await answered(page);
      assert.equal(await body(page).locator(".prose").innerText(), "I do not know Mars.");
      await page.reload();
      await connected(page);
      await button(page, "What is 185 times 2^3?").click();
      assert.equal(await cards(page).locator(".result").innerText(), "1480");
      const { width } = page.viewportSize();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    });

  test("arguments that are wrong are a result, and calls without an end are stopped", async (t) => {
    const page = await visit(t, await scripted(t, script));
    await set(page, { "Show text": "live" });
    await toggle(page, "Tools").check();
    await send(page, "something wrong");
    await answered(page);
    assert.equal(await cards(page).locator(".result").innerText(), "Error: The expression ends too early.");
    assert.equal(await body(page).locator(".prose").innerText(), "That went wrong.");
    await button(page, "New").click();
    await send(page, "go on for ever");
    await answered(page);
    await state(page).getByText("stopped: the model has called tools 8 times without an answer").waitFor();
    assert.deepEqual(await cards(page).locator(".result").allInnerTexts(), Array(8).fill("1"));
  });

  test("a model that knows no calls: the switch says so, and the conversation goes on", async (t) => {
    const page = await visit(t, await real(t));
    await set(page, { "Max tokens": "12", "Show text": "live" });
    await toggle(page, "Tools").check();
    await send(page, "hello");
    await answered(page);
    await state(page).getByText(/^reached its limit of 12 tokens/).waitFor();
    assert.equal(await toggle(page, "Tools").isChecked(), false);
    const words = await page.locator("#tools-note").textContent();
    assert.match(words, /^Switched off, because this model cannot be given tools: .*no known tool format/);
    await shot(page, "tools-refused");
    await send(page, "and again");
    await answered(page);
    assert.equal(await turns(page, "assistant").count(), 2);
    await toggle(page, "Tools").check();
    assert.equal(await page.locator("#tools-note").textContent(), "");
  });
});
