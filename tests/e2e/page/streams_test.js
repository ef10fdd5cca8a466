// Many streams side by side: sixteen of them, their ends, what is seen at once, the chart, the server.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { busy } from "../fake_server.js";
import { button, card, fake, grows, no_browser, no_real, real, run_streams, seen, set, shot } from "./kit.js";
import { sizes, state, send, view, visit } from "./kit.js";

const made = (slot) => `.card[data-slot="${slot}"] .made`;
const cards = (page, status) => page.locator(`.card[data-state=${status}]`);

async function until(count, locator) {
  while ((await locator.count()) !== count) await locator.page().waitForTimeout(20);
}

/** What any weir server must do for the page. */
function streams_spec(start) {
  test("sixteen streams write, each its own text, and all stop", async (t) => {
    const page = await visit(t, await start(t));
    await run_streams(page, 16);
    for (const slot of [1, 8, 16]) await grows(page, made(slot));
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".made")].every((it) => it.textContent.length > 40),
    );
    const texts = await page.locator(".made").allTextContents();
    assert.ok(new Set(texts.map((text) => text.slice(0, 12))).size > 4, "the seeds differ");
    await page.keyboard.press("Escape");
    await until(16, cards(page, "cancelled"));
    assert.ok(await button(page, "Stop all").isDisabled());
  });

  test("a stream stops alone, and is removed", async (t) => {
    const page = await visit(t, await start(t));
    await run_streams(page, 3);
    for (const slot of [1, 2, 3]) await grows(page, made(slot));
    await button(page, "Stop stream 2").click();
    await card(page, 2, "state").getByText("stopped").waitFor();
    await grows(page, made(1));
    await button(page, "Remove stream 2").click();
    await until(2, page.locator(".card"));
    await grows(page, made(3));
  });

  test("a stream that reaches its limit says so; the same seed gives the same text again", async (t) => {
    const page = await visit(t, await start(t));
    await set(page, { "Max tokens": "12", Seed: "42" });
    const texts = [];
    for (let i = 0; i < 2; i++) {
      await run_streams(page, 1);
      await card(page, 1, "state").getByText("reached its limit of 12 tokens").waitFor();
      texts.push(await card(page, 1, "made").textContent());
    }
    assert.ok(texts[0].length > 0);
    assert.equal(texts[0], texts[1]);
    assert.equal(await card(page, 1, "tokens").textContent(), "12");
  });

  test("the chart is drawn in both bands, and its numbers are real", async (t) => {
    const page = await visit(t, await start(t));
    await run_streams(page, 2);
    for (const band of ["raw", "shown"])
      await page.waitForFunction(
        (id) => parseFloat(document.getElementById(id).textContent) > 0,
        `${band}-median`,
      );
    const colours = await page.locator("#chart").evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
    assert.ok(colours > 3, `${colours} colours`);
  });

  test("the server's batch and pages are seen while it writes", async (t) => {
    const page = await visit(t, await start(t));
    await run_streams(page, 4);
    await page.getByText(/^4 writing/).waitFor();
    assert.equal(await page.locator("#sequences [data-state=decoding]").count(), 4);
    assert.match(
      await page.locator("#pages-words").textContent(),
      /^[1-9][\d,]* in use · [\d,]+ kept .* free$/,
    );
    assert.match(await page.locator("#device-step").textContent(), /^[\d.]+ ms$/);
  });
}

describe("streams side by side", { skip: no_browser }, () => {
  streams_spec((t) => fake(t, { tokens_per_s: 30 }));

  for (const [name, viewport] of Object.entries(sizes)) {
    test(`a refused request is seen without scrolling, ${name}`, async (t) => {
      const refuse = { code: "rate_limited", message: "rate limit", retry_after_ms: 1500 };
      const page = await visit(t, await fake(t, { plan: () => ({ refuse }) }), { viewport });
      await run_streams(page, 2);
      const words = "The server has too much to do right now. Try again in 2 s.";
      await page.locator("#ask-state").getByText(`2 failed: ${words}`).waitFor();
      assert.ok(await seen(page.locator("#ask-state")));
      assert.ok(await seen(card(page, 1, "state")));
      await shot(page, `refused-${name}`);
      await page.getByRole("radio", { name: "Chat" }).check();
      await send(page, "hello");
      await state(page).getByText(words).waitFor();
      assert.ok(await seen(state(page)));
    });

    test(`text comes first: it is seen without scrolling, ${name}`, async (t) => {
      const page = await visit(t, await fake(t), { viewport });
      await run_streams(page, 8);
      await grows(page, made(1));
      assert.ok(await seen(card(page, 1, "text")));
      const tall = await page.evaluate(() => document.documentElement.scrollHeight);
      assert.ok(tall < 2.2 * viewport.height, `eight streams are ${tall} px tall`);
    });
  }

  test("a server that has written all, while the page still shows it, is no contradiction", async (t) => {
    const server = await fake(t, { tokens_per_s: 1000 });
    const page = await visit(t, server);
    await set(page, { "Max tokens": "500", "Show text": "20" });
    await run_streams(page, 2);
    await page.getByText("2 under way", { exact: true }).waitFor();
    server.stats = { ...busy, jobs: { queued: 0, prefilling: 0, decoding: 0, paused: 0, finished: 2 } };
    await page.getByText("2 still being shown: the server has written all", { exact: true }).waitFor();
    await page.getByText("at rest: all is written, and this page is still showing it").waitFor();
    await view(page, "Chat");
    await send(page, "hello");
    await state(page)
      .getByText(/^still showing what is written · \d+ tokens/)
      .waitFor();
    server.stats = busy;
    await state(page)
      .getByText(/^writing · \d+ tokens/)
      .waitFor();
    await button(page, "Stop").click();
    await view(page, "Side by side");
    await button(page, "Stop all").click();
    server.stats = { ...busy, jobs: { queued: 0, prefilling: 0, decoding: 0, paused: 0, finished: 3 } };
    await page.getByText("at rest", { exact: true }).waitFor();
  });

  test("no speed is told of a few tokens", async (t) => {
    const pieces = Array.from({ length: 5 }, () => ({ delta: "a " }));
    const page = await visit(t, await fake(t, { plan: () => ({ pieces, gap_ms: () => 0 }) }));
    await set(page, { "Show text": "live" });
    await run_streams(page, 1);
    await card(page, 1, "state").getByText("finished").waitFor();
    assert.equal(await card(page, 1, "speed").textContent(), "");
  });

  test("an error of the request is said in the server's words", async (t) => {
    const refuse = {
      code: "invalid_param",
      param: "input",
      message: "input: this model has no chat template",
    };
    const page = await visit(t, await fake(t, { plan: () => ({ refuse }) }));
    await send(page, "hello");
    await state(page).getByText(refuse.message).waitFor();
  });

  test("wrong text is never shown: a gap ends the stream", async (t) => {
    const pieces = [{ delta: "right " }, { delta: "WRONG", seq: 9 }];
    const page = await visit(t, await fake(t, { plan: () => ({ pieces, gap_ms: () => 5 }) }));
    await run_streams(page, 1);
    await card(page, 1, "state")
      .getByText(/Tokens 2 to 8 never arrived/)
      .waitFor();
    assert.equal(await card(page, 1, "made").textContent(), "right ");
  });
});

describe("streams side by side, on the real server", { skip: no_real }, () => {
  streams_spec((t) => real(t));
});
