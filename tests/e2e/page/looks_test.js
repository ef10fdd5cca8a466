// How the page looks and what it costs: accessibility, widths, transfer, pictures; light and dark, wide and
// phone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import { story } from "../fake_server.js";
import {
  answered,
  button,
  fake,
  grows,
  no_browser,
  no_real,
  open_context,
  real,
  run_streams,
} from "./kit.js";
import { schemes, send, set, shot, sizes, toggle, unfold, view, visit } from "./kit.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const most_bytes = 120 * 1024;
const reply =
  "# A list\n\n- one\n- two\n\n" +
  "```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | [2](http://a.example) |\n\n> q";

const long = `"${"1 + ".repeat(40)}1"`;
const parted = [
  { part: "reasoning", delta: "The reader asks for a sum.\n".repeat(20), n: 40, t: 2_400_000 },
  { part: "text", delta: "I calculate it." },
  { part: "arguments", delta: `{"expression": ${long}}`, call: { index: 0, id: "a", name: "calculator" } },
  { part: "arguments", delta: '{"time_zone": "Mars"}', call: { index: 1, id: "b", name: "clock" } },
];

/** What axe-core finds that is serious or critical. */
async function serious(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

describe("the page's looks", { skip: no_browser }, () => {
  for (const colorScheme of schemes)
    for (const [size, viewport] of Object.entries(sizes)) {
      const at = `${colorScheme}, ${size}`;
      const plan = (request) => {
        if (request.seed !== undefined) return story(request, 25);
        const called = request.tools && request.input.at(-1).role === "user";
        return { pieces: called ? parted : [{ delta: reply }], gap_ms: () => 1 };
      };

      test(`nothing serious is found, and nothing is wider than the window, ${at}`, async (t) => {
        const page = await visit(t, await fake(t, { plan }), { viewport, colorScheme });
        const fits = async () =>
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width);
        assert.deepEqual(await serious(page), []);
        await unfold(page);
        await send(page, "hello");
        await answered(page);
        assert.deepEqual(await serious(page), []);
        await fits();
        await toggle(page, "Tools").check();
        await toggle(page, "Schema").check();
        await send(page, "hello");
        await answered(page);
        assert.equal(await page.locator(".call.failed").count(), 1);
        assert.match(await page.locator("#schema-mark").textContent(), /invalid/);
        await page.locator(".thought summary").click();
        assert.deepEqual(await serious(page), []);
        await fits();
        await shot(page, `${at.replace(", ", "-")}-parts`);
        await page.getByLabel("JSON schema that the answer must follow").fill("{");
        assert.deepEqual(await serious(page), []);
        await fits();
        for (const name of ["Tools", "Schema"]) await toggle(page, name).uncheck();
        await button(page, "Edit").first().click();
        assert.deepEqual(await serious(page), []);
        await button(page, "Settings").click();
        assert.deepEqual(await serious(page), []);
        await button(page, "Done").click();
        await set(page, { Seed: "1" });
        await run_streams(page, 16);
        await grows(page, '.card[data-slot="16"] .made');
        assert.deepEqual(await serious(page), []);
        await fits();
      });
    }

  const no_shots = !process.env.SHOTS && "SHOTS names no folder";
  for (const colorScheme of schemes)
    for (const [size, viewport] of Object.entries(sizes))
      test(`pictures, ${colorScheme}, ${size}`, { skip: no_shots }, async (t) => {
        const at = `${colorScheme}-${size}`;
        const page = await visit(t, await fake(t, { plan: (request) => story(request, 25) }), {
          viewport,
          colorScheme,
        });
        await shot(page, `${at}-empty`);
        await send(page, "Tell me a story of a river.");
        await page.waitForTimeout(2500);
        await shot(page, `${at}-chat`);
        await button(page, "Stop").click();
        await view(page, "Complete");
        await send(page, "Once upon a time");
        await page.waitForTimeout(2000);
        await shot(page, `${at}-complete`);
        await button(page, "Stop").click();
        await run_streams(page, 8);
        await page.waitForTimeout(4000);
        await shot(page, `${at}-streams`);
        await shot(page, `${at}-streams-full`, { fullPage: true });
        await button(page, "Settings").click();
        await shot(page, `${at}-settings`);
      });
});

describe("what the page costs, on the real server", { skip: no_real }, () => {
  test("less than 120 KiB are transferred until the page is connected", async (t) => {
    const server = await real(t);
    const page = await (await open_context(t)).newPage();
    const network = await page.context().newCDPSession(page);
    await network.send("Network.enable");
    const files = new Map();
    let bytes = 0;
    network.on("Network.responseReceived", ({ requestId, response }) => files.set(requestId, response.url));
    network.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.goto(server.url);
    await page.getByText("connected", { exact: true }).waitFor();
    await page.waitForLoadState("networkidle");
    assert.ok([...files.values()].some((url) => url.endsWith("purify.min.js")));
    assert.ok(bytes > 20_000 && bytes < most_bytes, `${bytes} bytes`);
    const paint = await page.evaluate(
      () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    );
    t.diagnostic(`${bytes} bytes in ${files.size} files; first paint after ${Math.round(paint)} ms`);
  });
});
