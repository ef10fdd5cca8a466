// The gaps that the chart calls «as they arrive», by the rule of chart.js alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load_module } from "../fake_server.js";

const { Arrivals } = await load_module("chart.js");

/** A frame of n tokens that came at `at` ms, whose last token was made at `t` µs. */
const frame = (at, t, more) => ({ at, t, n: 1, held: false, ...more });

test("a frame that the server sent by itself counts with the time since the frame before it", () => {
  const arrivals = new Arrivals();
  assert.equal(arrivals.gap(1, frame(100, 0)), undefined);
  assert.equal(arrivals.gap(1, frame(340, 5_000)), 240, "a burst of the network stays visible");
  assert.equal(arrivals.gap(1, frame(340.5, 10_000, { n: 12 })), 0.5);
});

test("a frame that waited for this page counts with the server's own time for each of its tokens", () => {
  const arrivals = new Arrivals();
  arrivals.gap(1, frame(100, 0));
  assert.equal(arrivals.gap(1, frame(745, 96_000, { n: 32, held: true })), 3);
  assert.equal(arrivals.gap(1, frame(750, 99_000)), 5);
});

test("streams have gaps of their own", () => {
  const arrivals = new Arrivals();
  arrivals.gap(1, frame(100, 0));
  assert.equal(arrivals.gap(2, frame(130, 0)), undefined);
  assert.equal(arrivals.gap(1, frame(150, 50_000)), 50);
});
