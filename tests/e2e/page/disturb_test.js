// What a reader can do to a stream: the text goes on without a gap and without a repeat.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { client_of } from "../client_kit.js";
import { story } from "../fake_server.js";
import { answered, body, button, card, connected, fake, grows, has_text, looks } from "./kit.js";
import { no_browser, no_real, real, run_streams, send, set, shot, state } from "./kit.js";
import { unfold, view, visit } from "./kit.js";

const tokens = 200;
const whole = story({ seed: 3, max_tokens: tokens }, 0)
  .pieces.map(({ delta }) => delta)
  .join("")
  .trim();

/** How many tokens a server writes before a test has done what it does in mid-answer. */
const hold_at = 30;

async function begin(t, server, settings = {}, look = looks["wide, light"]) {
  const page = await visit(t, server, look);
  await unfold(page);
  await set(page, { Seed: "3", "Max tokens": String(tokens), "Show text": "live", ...settings });
  await send(page, "Tell me a story");
  await has_text(page);
  return page;
}

/** The answer is the server's text, from its first character to its last. */
async function is_whole(page) {
  await answered(page);
  assert.equal((await body(page).innerText()).trim(), whole);
}

describe("the page's demonstrations", { skip: no_browser }, () => {
  for (const [name, look] of Object.entries(looks))
    test(`the network is cut by the button: the text goes on without a seam, ${name}`, async (t) => {
      const server = await fake(t, { tokens_per_s: 40, hold_at });
      const page = await begin(t, server, {}, look);
      await button(page, "Cut the network").click();
      await state(page).getByText("connection lost: going on as soon as it is back").waitFor();
      assert.equal(server.open(), 0);
      await page.getByText(/^The network is cut/).waitFor();
      await page.getByText("Not known while there is no connection.").waitFor();
      await shot(page, `cut-${name}`);
      await connected(page);
      await state(page)
        .getByText(/^writing/)
        .waitFor();
      server.release();
      await is_whole(page);
      assert.equal(server.received.filter(({ type }) => type === "response.create").length, 1);
      assert.ok(server.received.some(({ type, after }) => type === "response.resume" && after > 0));
    });

  test("the server drops the socket twice: the text goes on", async (t) => {
    const server = await fake(t, { tokens_per_s: 100, hold_at });
    const page = await begin(t, server);
    for (let cut = 0; cut < 2; cut++) {
      server.refuse_upgrades = true; // until the page was seen without a connection
      server.drop();
      await state(page).getByText("connection lost: going on as soon as it is back").waitFor();
      server.refuse_upgrades = false;
      await state(page)
        .getByText(/^writing/)
        .waitFor();
    }
    server.release();
    await is_whole(page);
  });

  for (const [name, look] of Object.entries(looks))
    test(`the page is reloaded in mid-answer: the same answer goes on, ${name}`, async (t) => {
      const server = await fake(t, { tokens_per_s: 60, hold_at });
      const page = await begin(t, server, {}, look);
      await button(page, "Reload the page").click();
      await page.waitForFunction(() => performance.getEntriesByType("navigation")[0].type === "reload");
      await has_text(page);
      server.release();
      await is_whole(page);
      assert.equal(server.received.filter(({ type }) => type === "response.create").length, 1);
      await page.reload();
      await connected(page);
      await page.locator("#chats button").first().click();
      assert.equal((await body(page).innerText()).trim(), whole, "it is kept");
    });

  test("a slow reader: its text waits at the server", async (t) => {
    const server = await fake(t, { tokens_per_s: 200, hold_at });
    const page = await begin(t, server);
    await button(page, "Read slowly").click();
    server.release();
    const length = async () => (await body(page).innerText()).length;
    const job = [...server.jobs.values()][0];
    while (job.status === "in_progress") await page.waitForTimeout(20);
    assert.ok((await length()) < whole.length / 2, "the server is done, the reader is not");
    await button(page, "Read slowly").click();
    await is_whole(page);
  });

  test("a bursty network: what is shown is more even than what arrives", async (t) => {
    const page = await begin(t, await fake(t, { tokens_per_s: 40 }), { "Show text": "even" });
    await button(page, "Bursty network").click();
    await is_whole(page);
    const [raw, shown] = await Promise.all(
      ["#raw-median", "#shown-median"].map((id) => page.locator(id).textContent().then(parseFloat)),
    );
    assert.ok(raw < shown, `most tokens arrive together (${raw} ms) and are shown apart (${shown} ms)`);
  });

  test("a pace is kept, whatever the server's speed; the axis fits what there is", async (t) => {
    const server = await fake(t, { tokens_per_s: 1000 });
    const page = await begin(t, server, { "Show text": "50", "Max tokens": "80" });
    const began = Date.now();
    await answered(page);
    assert.ok(Date.now() - began > 800, "80 tokens at 50 a second");
    await state(page)
      .getByText(/80 tokens/)
      .waitFor();
    const width = await page.locator("#chart").evaluate((canvas) => {
      const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const ink = (x) =>
        Array.from({ length: height }, (_, y) => data[4 * (y * width + x) + 3]).filter(Boolean);
      const columns = Array.from({ length: width }, (_, x) => ink(x).length);
      const lines = Math.min(...columns.slice(60, width - 12)); // of the grid
      return columns.findLastIndex((n, x) => n > lines + 2 && x < width - 30) / width;
    });
    assert.ok(width > 0.4, `the dots reach ${width} of the width`);
  });

  test("a server that restarts in mid-answer is said on the answer; a retry works", async (t) => {
    let server = await fake(t, { tokens_per_s: 40, hold_at });
    const page = await begin(t, server);
    await server.stop();
    await state(page).getByText("connection lost: going on as soon as it is back").waitFor();
    await page.getByText(/The server is not answering\. Trying again in \d+ s…/).waitFor();
    assert.ok(await page.locator("#device-now").isHidden(), "nothing stale");
    server = await fake(t, { port: server.port, tokens_per_s: 1000 });
    await state(page)
      .getByText(/the server does not know this response any more/)
      .waitFor();
    await button(page, "Retry").click();
    await is_whole(page);
  });
});

describe("the page's demonstrations, on the real server", { skip: no_real }, () => {
  test("cut and reload in mid-answer: the text is that of the same seed undisturbed", async (t) => {
    const page = await visit(t, await real(t));
    await set(page, { Seed: "3", "Max tokens": "500", "Show text": "live" });
    await view(page, "Complete");
    await send(page, "Once");
    await grows(page);
    await button(page, "Cut the network").click();
    await state(page).getByText("connection lost: going on as soon as it is back").waitFor();
    await connected(page);
    await grows(page);
    await button(page, "Reload the page").click();
    await page.waitForFunction(() => performance.getEntriesByType("navigation")[0].type === "reload");
    await answered(page);
    await state(page)
      .getByText(/^reached its limit of/)
      .waitFor();
    const disturbed = await body(page).innerText();
    await button(page, "Retry").click();
    await grows(page);
    await answered(page);
    assert.equal(await body(page).innerText(), disturbed);
  });

  test("while the page reads slowly, another client gets all of its tokens", async (t) => {
    const server = await real(t);
    const page = await visit(t, server);
    await button(page, "Read slowly").click();
    await send(page, "hello");
    await grows(page);
    const { status } = await client_of(server).create({ input: "other", max_tokens: 60 }).done;
    assert.equal(status, "incomplete");
    const mine = parseInt((await state(page).textContent()).replace(/^.*· (?=\d+ tokens)/, ""));
    assert.ok(mine < 50, `${mine} tokens here, 60 there`);
  });

  test("streams side by side go on after a cut, too", async (t) => {
    const page = await visit(t, await real(t));
    await run_streams(page, 3);
    await grows(page, '.card[data-slot="3"] .made');
    await button(page, "Cut the network").click();
    await card(page, 3, "state")
      .getByText(/^connection lost/)
      .waitFor();
    await connected(page);
    for (const slot of [1, 2, 3]) await grows(page, `.card[data-slot="${slot}"] .made`);
  });
});
