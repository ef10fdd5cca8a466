// What a model thinks before it answers: folded, told from the answer, kept.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { answered, body, button, connected, fake, looks, no_browser, no_real, scripted } from "./kit.js";
import { send, set, shot, state, turns, visit } from "./kit.js";

const thought = "The reader greets me.\nI greet back.";
const script = [
  { when: "What was it?", say: "<think>\nLook back.\n</think>\n\nA greeting." },
  { when: "no end", say: `<think>\n${thought.repeat(30)}` },
  { say: `<think>\n${thought}\n</think>\n\n**Hello.**` },
];
const thoughts = (page) => turns(page, "assistant").last().locator(".thought");

describe("the page's reasoning", { skip: no_browser }, () => {
  const pieces = [
    { part: "reasoning", delta: "I think", t: 1_000_000 },
    { part: "reasoning", delta: " twice.", t: 2_500_000 },
    { part: "text", delta: "Yes." },
  ];

  test("it says that the model is thinking, then for how long", async (t) => {
    const server = await fake(t, { plan: () => ({ pieces, gap_ms: () => 1 }), hold_at: 2 });
    const page = await visit(t, server);
    await send(page, "hello");
    const summary = thoughts(page).locator("summary");
    await summary.getByText("Thinking… 2 tokens").waitFor();
    await page.locator("#spoken").getByText("The model is thinking.").waitFor({ state: "attached" });
    await state(page).getByText("thinking · 2 tokens").or(state(page).getByText("waiting")).waitFor();
    server.release();
    await answered(page);
    assert.equal(await summary.textContent(), "Thought for 1500 ms · 2 tokens");
    assert.equal(server.received.find(({ type }) => type === "response.create").reasoning, "separate");
  });

  test("a thought is not paced: the answer does not wait for what is folded", async (t) => {
    const long = { part: "reasoning", delta: "hm ".repeat(4_000), n: 4_000 }; // 200 s at 20 tokens/s
    const plan = () => ({ pieces: [long, ...pieces], gap_ms: () => 1 });
    const page = await visit(t, await fake(t, { plan }));
    await set(page, { "Show text": "20" });
    await send(page, "hello");
    await answered(page);
    assert.equal(await body(page).locator(".prose").innerText(), "Yes.");
  });

  test("what is stopped in the middle of a thought stays, and is not sent back as an answer", async (t) => {
    const server = await fake(t, { plan: () => ({ pieces, gap_ms: () => 1 }), hold_at: 2 });
    const page = await visit(t, server);
    await send(page, "hello");
    await thoughts(page).getByText("2 tokens").waitFor();
    await button(page, "Stop").click();
    await state(page).getByText(/^stopped/).waitFor();
    server.release();
    await send(page, "again");
    await answered(page);
    const [, second] = server.received.filter(({ type }) => type === "response.create");
    assert.deepEqual(
      second.input.map(({ role, content }) => [role, content]),
      [["user", "hello"], ["assistant", ""], ["user", "again"]],
    );
  });

  test("a reload in the middle of a thought goes on with it", async (t) => {
    const server = await fake(t, { plan: () => ({ pieces, gap_ms: () => 1 }), hold_at: 1 });
    const page = await visit(t, server);
    await send(page, "hello");
    await thoughts(page).getByText("1 tokens").waitFor();
    await page.reload();
    await connected(page);
    server.release();
    await answered(page);
    await thoughts(page).locator("summary").click();
    assert.equal(await thoughts(page).locator(".thoughts").textContent(), "I think twice.");
    assert.equal(await body(page).locator(".prose").innerText(), "Yes.");
  });
});

describe("the page's reasoning, on the real server", { skip: no_real }, () => {
  for (const [name, look] of Object.entries(looks))
    test(`it is folded, opens by a click or a key, and is kept, ${name}`, async (t) => {
      const page = await visit(t, await scripted(t, script), look);
      await set(page, { "Show text": "live" });
      await send(page, "hello");
      await answered(page);
      assert.equal(await body(page).locator(".prose").innerText(), "Hello.");
      assert.equal(await body(page).locator("strong").count(), 1);
      const inside = thoughts(page).locator(".thoughts");
      assert.equal(await inside.isVisible(), false);
      await thoughts(page).locator("summary").click();
      assert.equal(await inside.innerText(), thought);
      await shot(page, `reasoning-${name.replace(", ", "-")}`);
      await page.keyboard.press("Enter");
      assert.equal(await inside.isVisible(), false, "the key folds it again");
      assert.match(await thoughts(page).locator("summary").textContent(), /^Thought .*\d+ tokens$/);
      await page.reload();
      await connected(page);
      await page.locator("#chats button").first().click();
      await thoughts(page).locator("summary").click();
      assert.equal(await inside.innerText(), thought);
      const { width } = page.viewportSize();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    });

  test("earlier thoughts do not go back to the model, and a thought that is open stays open", async (t) => {
    const page = await visit(t, await scripted(t, script));
    await set(page, { "Show text": "live" });
    await send(page, "hello");
    await answered(page);
    await send(page, "What was it?");
    await answered(page);
    assert.equal(await body(page).locator(".prose").innerText(), "A greeting.");
    const kept = await page.evaluate(() =>
      Object.entries(localStorage).find(([name]) => name.startsWith("weir.chat."))[1]);
    const { messages_of } = await page.evaluate(async (text) => {
      const { messages_of } = await import("./said.js");
      return { messages_of: messages_of(JSON.parse(text).turns) };
    }, kept);
    assert.deepEqual(messages_of.map(({ role, content }) => [role, content]), [
      ["user", "hello"],
      ["assistant", "**Hello.**"],
      ["user", "What was it?"],
      ["assistant", "A greeting."],
    ]);
    assert.ok(messages_of.every((message) => !("reasoning_content" in message)));
  });

  test("a thought that is cut says so, and the answer is empty", async (t) => {
    const page = await visit(t, await scripted(t, script));
    await set(page, { "Show text": "live", "Max tokens": "100" });
    await send(page, "no end");
    await answered(page);
    await state(page).getByText(/^reached its limit of 100 tokens/).waitFor();
    assert.equal(await body(page).locator(".prose").allInnerTexts().then((all) => all.join("")), "");
    assert.match(await thoughts(page).locator("summary").textContent(), /^Thought /);
  });
});
