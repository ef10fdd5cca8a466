// Two boxes and nothing else: each is `weir serve --join`, with streams and engines of its own. What one has
// no room for runs in the other, and goes on where it is streamed when that one is killed.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Nats, boards, completion, fleet, pause, skip, start_weir, until } from "./fleet_kit.js";
import { start_real } from "./real_server.js";
import { drawn } from "./seeds.js";

const engine = ["--device", "sim:rate=60", "--max-batch", "4", "--queue", "0"];

describe("two servers that have joined", { skip }, () => {
  const nats = new Nats();
  const boxes = [];
  let alone;
  const start_box = () =>
    start_weir(["serve", "--join", nats.url, ...engine, "--listen", "127.0.0.1:0", "--drain-s", "1"]);
  const both_are_known = () =>
    until(async () => {
      const seen = await Promise.all(
        boxes.map(async ({ url }) => (await (await fetch(`${url}/v1/stats`)).json()).fleet?.workers?.length));
      return seen.every((n) => n === boxes.length);
    }, "both know each other");

  before(async () => {
    await nats.start();
    boxes.push(await start_box(), await start_box());
    alone = await start_real({ args: ["--device", "sim:rate=1000", "--max-batch", "64"] });
    await both_are_known();
  });
  after(async () => {
    for (const one of boxes) await one.kill();
    await alone?.stop();
    await nats.remove();
  });

  const bodies_of = (round) =>
    Array.from({ length: 6 }, (_, i) => ({
      model: "sim",
      prompt: `round ${round} ${i}`,
      seed: drawn(100 * round + i) % 100000,
      max_tokens: 240,
    }));
  /** Jobs of the first box that run in the second one. */
  const jobs_there = async () => (await (await fetch(`${boxes[0].url}/v1/stats`)).json()).fleet.jobs;
  const right_ones = (bodies) => Promise.all(bodies.map((b) => completion(alone.url, b).done));

  test("what one has no room for runs in the other", async () => {
    const bodies = bodies_of(1);
    const running = bodies.map((b) => completion(boxes[0].url, b));
    assert.deepEqual(await Promise.all(running.map(({ done }) => done)), await right_ones(bodies));
    assert.equal((await boards(nats)).length, 2);
  });

  test("one is killed under answers of the other, and the next one takes its place", async () => {
    const bodies = bodies_of(2);
    const running = bodies.map((b) => completion(boxes[0].url, b));
    await until(() => running.every(({ text }) => text.length > 50), "all streams run");
    assert.ok((await jobs_there()) > 0, "some run in the other");
    await boxes[1].kill();
    assert.deepEqual(await Promise.all(running.map(({ done }) => done)), await right_ones(bodies));
    boxes[1] = await start_box();
    await both_are_known();
  });

  test("one that is told to end gives back what runs there for the other, and ends with 0", async () => {
    const bodies = bodies_of(3);
    const running = bodies.map((b) => completion(boxes[0].url, b));
    await until(() => running.every(({ text }) => text.length > 20), "all streams run");
    boxes[1].signal("SIGTERM");
    assert.equal(await boxes[1].ended, 0, boxes[1].log());
    assert.deepEqual(await Promise.all(running.map(({ done }) => done)), await right_ones(bodies));
    boxes[1] = await start_box();
    await both_are_known();
  });

  test("without NATS a server goes on alone", async () => {
    await nats.kill();
    await until(() => boxes[0].log().includes("the link is down"), "the box has noticed");
    await pause(200);
    const bodies = bodies_of(4).slice(0, 4);
    assert.deepEqual(
      await Promise.all(bodies.map((b) => completion(boxes[0].url, b).done)),
      await right_ones(bodies),
    );
    await nats.start();
    await until(async () => (await fleet(nats, ["--json"])).text.includes(`"o"`), "they are back");
    await both_are_known();
  });
});
