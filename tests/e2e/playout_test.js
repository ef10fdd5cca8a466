// weir.js' playout buffer, in Node on a clock of the test's own, and as a stream's option `play`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bursty, gap_cv } from "./bursts.js";
import { arrived, client_of, fake, pause, say, weir } from "./client_kit.js";

const { Playout } = weir;
const frame_ms = 1000 / 60;

/** A clock whose time passes only in run(), which makes the calls that are due, in order. */
class TestClock {
  #calls = new Set();
  #now = 5;
  frame;

  /** frame_ms: the time between frames; absent: there are no frames. late_ms: how late every timer is. */
  constructor({ frame_ms, late_ms = 0 } = {}) {
    this.wait = (ms, call) => this.#at(this.#now + Math.max(0, ms) + late_ms, call);
    const next = () => (Math.floor(this.#now / frame_ms + 1e-6) + 1) * frame_ms;
    if (frame_ms) this.frame = (call) => this.#at(next(), call);
  }

  now = () => this.#now;

  #at(at, call) {
    const entry = { at, call };
    this.#calls.add(entry);
    return () => this.#calls.delete(entry);
  }

  run(until) {
    for (;;) {
      const next = [...this.#calls].sort((a, b) => a.at - b.at)[0];
      if (!next || next.at > until) break;
      this.#calls.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.call();
    }
    this.#now = Math.max(this.#now, until);
  }
}

/** When each token is shown. All are shown before the playout is told of the end. */
function played(arrivals, clock) {
  const shown = [];
  const playout = new Playout(({ seq }) => shown.push({ seq, at: clock.now() }), clock);
  arrivals.forEach((at, i) => {
    clock.run(at);
    playout.push({ text: "x", n: 1, seq: i + 1, at });
  });
  clock.run(arrivals.at(-1) + 1_000);
  assert.deepEqual(
    shown.map(({ seq }) => seq),
    arrivals.map((_, i) => i + 1),
    "everything once, in order",
  );
  playout.end();
  return shown.map(({ at }) => at);
}

for (const [where, options] of [
  ["frames at 60 Hz", { frame_ms }],
  ["timers", {}],
])
  for (let seed = 1; seed <= 5; seed++)
    test(`${where}: a bursty source is shown at a third of its unevenness, in time, seed ${seed}`, () => {
      const arrivals = bursty(seed);
      const shown = played(arrivals, new TestClock(options));
      assert.equal(shown[0], arrivals[0], "the first token waits for nothing");
      shown.forEach((at, i) => assert.ok(at - arrivals[i] <= 250, `token ${i} waits ${at - arrivals[i]} ms`));
      const [at_socket, at_eye] = [gap_cv(arrivals), gap_cv(shown)];
      assert.ok(at_eye <= at_socket / 3, `${at_eye} at the eye, ${at_socket} at the socket`);
    });

for (const [where, options] of [
  ["frames at 10 Hz", { frame_ms: 100, late_ms: 4 }],
  ["frames that never come", { frame_ms: 1e9, late_ms: 4 }],
  ["timers that are late", { late_ms: 15 }],
])
  test(`${where}: no token is shown later than 250 ms after it arrived`, () => {
    const arrivals = bursty(6);
    const shown = played(arrivals, new TestClock(options));
    shown.forEach((at, i) => assert.ok(at - arrivals[i] <= 250, `token ${i} waits ${at - arrivals[i]} ms`));
  });

test("an even source is shown as it comes", () => {
  const arrivals = Array.from({ length: 200 }, (_, i) => 100 + i * 20);
  const shown = played(arrivals, new TestClock());
  shown.forEach((at, i) => assert.ok(at - arrivals[i] < 1, `token ${i} waits ${at - arrivals[i]} ms`));
});

/** A playout that holds back the end of a burst. */
function holding() {
  const clock = new TestClock({ frame_ms });
  const shown = [];
  const playout = new Playout(({ seq }) => shown.push(seq), clock);
  let seq = 0;
  const burst = () => {
    for (let i = 0; i < 8; i++) playout.push({ text: "x", n: 1, seq: ++seq, at: clock.now() });
  };
  for (let at = 100; at <= 1000; at += 80) {
    clock.run(at);
    burst();
  }
  assert.ok(shown.length < seq, "some are held back");
  return { clock, playout, shown, burst, seq: () => seq };
}

test("the end shows what is left, and nothing comes after it", () => {
  const { clock, playout, shown, seq } = holding();
  playout.end();
  assert.equal(shown.length, seq());
  clock.run(5_000);
  assert.equal(shown.length, seq());
});

test("a page that is hidden shows everything at once, and a seen one goes on evenly", (t) => {
  globalThis.document = Object.assign(new EventTarget(), { hidden: false });
  t.after(() => delete globalThis.document);
  const { clock, shown, burst, seq } = holding();
  document.hidden = true;
  document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(shown.length, seq());
  clock.run(1_040);
  burst();
  assert.equal(shown.length, seq(), "nothing is held while it is hidden");
  document.hidden = false;
  document.dispatchEvent(new Event("visibilitychange"));
  clock.run(1_120);
  burst();
  assert.ok(shown.length < seq());
});

const clumps = Array.from({ length: 40 }, (_, i) => ({ delta: `${i} ` }));
const in_clumps = () => ({ pieces: clumps, gap_ms: (i) => (i % 8 === 0 ? 80 : 0) });
const whole = clumps.map(({ delta }) => delta).join("");

test("a played stream gives every delta once, in order, some of them later than they arrived", async () => {
  const stream = client_of(await fake({ plan: in_clumps })).create({ input: "" }, { play: true });
  const waits = [], order = [];
  let text = "";
  stream.on("arrived", () => order.push("arrived"));
  stream.on("delta", ({ at }) => (order.push("shown"), waits.push(performance.now() - at)));
  for await (const delta of stream) text += delta.text;
  assert.equal(text, whole);
  assert.deepEqual(order.slice(0, 2), ["arrived", "shown"], "the first at once");
  assert.ok(waits.some((ms) => ms > 5));
});

for (const [how, end, status] of [
  ["a cancel", (stream) => stream.cancel(), "cancelled"],
  ["an error", (_, client) => client.close(), "failed"],
])
  test(`${how} shows what has arrived before the stream is over`, async () => {
    const pieces = Array(400).fill({ delta: "x" });
    const endless = () => ({ pieces, gap_ms: (i) => (i % 8 === 0 ? 80 : 0) });
    const client = client_of(await fake({ plan: endless }));
    const stream = client.create({ input: "" }, { play: true });
    let shown_at_end;
    stream.on("done", () => (shown_at_end = stream.deltas.at(-1).seq));
    await arrived(stream, 40);
    end(stream, client);
    assert.equal((await stream.done).status, status);
    assert.equal(shown_at_end, stream.seq);
  });

test("what is received counts for a resume, though it is not yet shown", async () => {
  const server = await fake({ plan: in_clumps });
  const stream = client_of(server).create({ input: "" }, { play: true });
  await arrived(stream, 20);
  server.drop();
  await stream.done;
  assert.equal(stream.deltas.map(({ text }) => text).join(""), whole);
});

test("a window is acknowledged for what is shown", async () => {
  const server = await fake({ plan: say(...clumps) });
  const stream = client_of(server).create({ input: "", window: 8 }, { play: true });
  stream.on("arrived", ({ seq }) => assert.ok(seq <= (stream.deltas.at(-1)?.seq ?? 0) + 12));
  assert.equal((await stream.done).status, "completed");
  await pause(0);
  assert.ok(server.received.some(({ type }) => type === "response.ack"));
});
