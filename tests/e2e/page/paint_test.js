// When a browser paints what weir.js plays out.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bursty, watch_paint } from "../bursts.js";
import { fake, no_browser, open_context } from "./kit.js";

describe("playout in a browser", { skip: no_browser }, () => {
  test("a bursty source that is played is painted in order, every token once", async (t) => {
    const arrivals = bursty(1, 200);
    const gap_ms = (i) => (i === 0 ? 0 : arrivals[i] - arrivals[i - 1]);
    const pieces = arrivals.map((_, i) => ({ delta: `${i} ` }));
    const server = await fake(t, { plan: () => ({ pieces, gap_ms }) });
    const page = await (await open_context(t)).newPage();
    await page.goto(server.url + "style.css"); // a page of the same origin
    const { seen, text } = await page.evaluate(watch_paint);
    assert.equal(text, pieces.map(({ delta }) => delta).join(""));
    assert.ok(seen.every(({ at, shown, painted }) => at <= shown && shown <= painted));
  });
});
