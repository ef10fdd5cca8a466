// weir.js in Node, against the scripted server: what a lost connection means for the streams on it.
import assert from "node:assert/strict";
import { after, before, mock, test } from "node:test";
import { WebSocket } from "ws";
import { seeded } from "./bursts.js";
import { arrived, client_of, fake, pause, say, state, weir } from "./client_kit.js";
import { drawn } from "./seeds.js";

// The back-off is drawn short, so that a thousand lost connections take seconds.
before(() => mock.method(Math, "random", () => 0.02));
after(() => mock.restoreAll());

const alphabet = [..."abcdefgh "].map((delta) => ({ delta }));
const long = Array.from({ length: 120 }, (_, i) => alphabet[i % alphabet.length]);
const whole = long.map(({ delta }) => delta).join("");
const frames_of = (server, type) => server.received.filter((frame) => frame.type === type);
const text_of = (stream) => stream.deltas.map(({ text }) => text).join("");

test("the text goes on over lost connections, and every stream says so", async () => {
  const server = await fake({ plan: say(...long) });
  const client = client_of(server);
  const states = [];
  const streams = [
    client.create({ input: "a" }, { onstate: ({ state }) => states.push(state) }),
    client.create({ input: "b" }),
  ];
  for (const tokens of [10, 50]) {
    await arrived(streams[0], tokens);
    server.drop();
  }
  const results = await Promise.all(streams.map(({ done }) => done));
  assert.deepEqual(
    results.map(({ status }) => status),
    ["completed", "completed"],
  );
  for (const stream of streams) {
    assert.equal(text_of(stream), whole);
    assert.equal(stream.text, whole);
  }
  assert.deepEqual(states, ["running", "reconnecting", "running", "reconnecting", "running", "over"]);
  assert.equal(frames_of(server, "response.create").length, 2);
  const lanes = server.received.filter(({ type }) => /create|resume/.test(type)).map(({ id }) => id);
  assert.equal(new Set(lanes).size, lanes.length, "each attempt has a lane of its own");
});

test("a resume names the response, the last token and the window", async () => {
  const server = await fake({ plan: say(...long) });
  const stream = client_of(server).create({ input: "", window: 40, seed: 1 });
  await arrived(stream, 20);
  server.drop();
  const { seq, response_id } = stream;
  await stream.done;
  const [{ id, ...resume }] = frames_of(server, "response.resume");
  assert.ok(resume.after >= seq);
  assert.deepEqual(resume, { type: "response.resume", response_id, after: resume.after, window: 40 });
});

test("a request that was sent and never answered is not sent again", async () => {
  const server = await fake();
  server.cut = () => ({ frames: 1 });
  const { status, error } = await client_of(server).create({ input: "" }).done;
  assert.equal(status, "failed");
  assert.equal(error.code, "connection_lost");
  assert.match(error.message, /^The connection to the server was lost\. Whether .* is not known/);
  assert.equal(frames_of(server, "response.create").length, 1);
});

test("a request that the lost socket never took is sent on the next one", async () => {
  const server = await fake({ plan: say(...alphabet) });
  let closing = false;
  class Socket extends WebSocket {
    get readyState() {
      return closing ? WebSocket.CLOSING : super.readyState;
    }
  }
  const client = client_of(server, { WebSocket: Socket });
  await state(client, ({ state }) => state === "open");
  closing = true;
  const stream = client.create({ input: "" });
  closing = false;
  server.drop();
  assert.equal((await stream.done).status, "completed");
  assert.equal(frames_of(server, "response.create").length, 1);
});

for (const [code, words] of [
  ["resume_expired", /no longer keeps this response/],
  ["not_found", /does not know this response any more/],
  ["invalid_cursor", /fewer tokens of it than have arrived/],
  ["unknown_type", /this server cannot resume/],
  ["too_many_jobs", /as the server says it/],
])
  test(`a resume refused with ${code} ends the stream and says so`, async () => {
    const server = await fake({ plan: say(...long) });
    server.refuse_resume = { code, message: "as the server says it" };
    const stream = client_of(server).create({ input: "" });
    await arrived(stream, 10);
    server.drop();
    const { status, error } = await stream.done;
    assert.equal(status, "failed");
    assert.equal(error.code, code);
    assert.match(error.message, words);
    assert.equal(text_of(stream), whole.slice(0, stream.seq), "what had come stays");
  });

test("a server that is busy is asked to resume again, when it says", async () => {
  const server = await fake({ plan: say(...long) });
  server.refuse_resume = { code: "rate_limited", message: "", retry_after_ms: 30 };
  const stream = client_of(server).create({ input: "" });
  await arrived(stream, 10);
  server.drop();
  while (frames_of(server, "response.resume").length < 2) await pause(5);
  server.refuse_resume = undefined;
  assert.equal((await stream.done).status, "completed");
  assert.equal(text_of(stream), whole);
});

test("a cancel while the connection is away reaches the server after it", async () => {
  const server = await fake({ plan: () => ({ pieces: long, gap_ms: () => 20 }) });
  const stream = client_of(server).create({ input: "" });
  await arrived(stream, 3);
  server.drop();
  await state(stream, ({ state }) => state === "reconnecting");
  stream.cancel();
  const { status, usage } = await stream.done;
  assert.equal(status, "cancelled");
  assert.ok(usage, "the result is the server's");
  assert.equal(frames_of(server, "response.cancel").length, 1);
  assert.ok([...server.jobs.values()].every((job) => job.status === "cancelled"));
});

test("a cancelled stream whose resume is refused ends as cancelled", async () => {
  const server = await fake({ plan: say(...long) });
  server.refuse_resume = { code: "not_found", message: "" };
  const stream = client_of(server).create({ input: "" });
  await arrived(stream, 3);
  server.drop();
  await state(stream, ({ state }) => state === "reconnecting");
  stream.cancel();
  assert.deepEqual(await stream.done, { status: "cancelled", finish_reason: "cancel" });
});

test("a connection that is to end is left without a seam", async () => {
  const server = await fake({ plan: () => ({ pieces: long, gap_ms: () => 4 }) });
  const client = client_of(server);
  const states = [];
  const onstate = ({ state }) => states.push(state);
  const streams = ["a", "b"].map((input) => client.create({ input }, { onstate }));
  await arrived(streams[1], 10);
  server.leave(10_000);
  for (const stream of streams) {
    assert.equal((await stream.done).status, "completed");
    assert.equal(text_of(stream), whole);
  }
  assert.deepEqual(states, ["running", "running", "over", "over"]);
  assert.equal(frames_of(server, "response.resume").length, 2);
  assert.equal(server.open(), 1, "the client has closed the old connection long before the deadline");
});

test("where the next connection cannot resume, a stream ends on the one that it has", async () => {
  const server = await fake({ plan: () => ({ pieces: long, gap_ms: () => 4 }) });
  server.refuse_resume = { code: "unknown_type", message: "response.resume is not supported yet" };
  const client = client_of(server);
  const stream = client.create({ input: "" });
  await arrived(stream, 10);
  server.leave(10_000);
  assert.equal((await stream.done).status, "completed");
  assert.equal(text_of(stream), whole);
  assert.equal(frames_of(server, "response.resume").length, 1);
  assert.equal((await client.create({ input: "" }).done).status, "completed");
});

test("a request on a connection that is to end is answered there, then goes over", async () => {
  const server = await fake({ plan: () => ({ pieces: long, gap_ms: () => 4 }) });
  const client = client_of(server);
  await state(client, ({ state }) => state === "open");
  const stream = client.create({ input: "" });
  server.leave(10_000);
  assert.equal((await stream.done).status, "completed");
  assert.equal(text_of(stream), whole);
  assert.equal(frames_of(server, "response.create").length, 1);
});

/** A sessionStorage that counts writes, and takes no value longer than `room`. */
function storage(room = Infinity) {
  const values = new Map();
  return {
    writes: 0,
    getItem: (key) => values.get(key) ?? null,
    removeItem: (key) => values.delete(key),
    setItem(key, value) {
      if (value.length > room) throw new Error("QuotaExceededError");
      this.writes++;
      values.set(key, value);
    },
  };
}

/** The events of a page, whose targets are made for the time of a test. */
function page_of(t) {
  const window = new EventTarget();
  globalThis.document = Object.assign(new EventTarget(), { hidden: false });
  for (const how of ["addEventListener", "removeEventListener"])
    globalThis[how] = (...listening) => window[how](...listening);
  t.after(() => {
    for (const name of ["document", "addEventListener", "removeEventListener"]) delete globalThis[name];
  });
  return {
    say: (name) => (name === "visibilitychange" ? document : window).dispatchEvent(new Event(name)),
  };
}

for (const event of ["visibilitychange", "pageshow", "online"]) {
  test(`${event}: an attempt that waits is made at once`, async (t) => {
    const page = page_of(t);
    const server = await fake({ plan: say(...long) });
    const client = client_of(server);
    const stream = client.create({ input: "" });
    await arrived(stream, 10);
    server.refuse_upgrades = true;
    server.drop();
    await state(client, ({ state }) => state === "waiting");
    document.hidden = true;
    page.say("visibilitychange");
    assert.equal(client.state, "waiting", "nobody sees the page");
    document.hidden = event === "online"; // which counts for a hidden page, too
    server.refuse_upgrades = false;
    page.say(event);
    assert.equal(client.state, "connecting");
    assert.equal((await stream.done).status, "completed");
    assert.equal(text_of(stream), whole);
    assert.equal(frames_of(server, "response.create").length, 1);
    client.close();
    page.say(event);
    assert.equal(client.state, "closed");
  });

  test(`${event}: a connection that is open is asked at once, and left if nobody answers`, async (t) => {
    const page = page_of(t);
    const server = await fake({ plan: say(...long), hold_at: 20 });
    const client = client_of(server);
    const stream = client.create({ input: "" });
    await arrived(stream, 20);
    const pings = () => frames_of(server, "ping").length;
    const before = pings();
    page.say(event);
    page.say(event);
    while (pings() === before) await pause(1);
    await pause(50);
    assert.equal(client.state, "open", "the server has answered");
    assert.ok(pings() <= before + 2, "one question is enough");
    server.mute = true;
    page.say(event);
    const { error } = await state(client, ({ state }) => state === "waiting");
    assert.equal(error.code, "connection_lost");
    server.mute = false;
    server.release();
    assert.equal((await stream.done).status, "completed");
    assert.equal(text_of(stream), whole);
  });
}

test("a remembered stream goes on after a reload, with few writes", async (t) => {
  globalThis.sessionStorage = storage();
  t.after(() => delete globalThis.sessionStorage);
  const server = await fake({ plan: say(...long) });
  const page = client_of(server);
  const stream = page.create({ input: "", window: 30 }, { remember: "answer" });
  await arrived(stream, 20);
  page.close(); // a real page may vanish without this call
  const saved = weir.remembered("answer");
  assert.deepEqual(saved, {
    response_id: stream.response_id,
    seq: stream.seq,
    text: whole.slice(0, stream.seq),
    window: 30,
  });
  assert.deepEqual(JSON.parse(JSON.stringify(stream)), saved);
  assert.ok(sessionStorage.writes <= 3);
  const again = client_of(server).resume(saved, { remember: "answer" });
  assert.equal((await again.done).status, "completed");
  assert.equal(again.text, whole);
  assert.equal(saved.text + text_of(again), whole);
  assert.equal(weir.remembered("answer"), null, "nothing is left to resume");
  assert.ok(sessionStorage.writes <= 4);
});

test("a text that storage has no room for comes from the server again", async (t) => {
  globalThis.sessionStorage = storage(80);
  t.after(() => delete globalThis.sessionStorage);
  const server = await fake({ plan: say(...long) });
  const page = client_of(server);
  await arrived(page.create({ input: "" }, { remember: "answer" }), 60);
  page.close();
  const saved = weir.remembered("answer");
  assert.deepEqual(Object.keys(saved), ["response_id", "seq"]);
  const again = client_of(server).resume(saved);
  await again.done;
  assert.equal(again.text, whole);
});

test("what is not a saved stream is refused, and so is remembering without a place for it", async () => {
  const client = client_of(await fake());
  for (const saved of [null, {}, { response_id: "x" }, { response_id: "x", seq: -1 }])
    assert.throws(() => client.resume(saved), /resume\(\) takes/);
  assert.throws(() => client.create({ input: "" }, { remember: "x" }), /needs sessionStorage/);
});

test("a window is acknowledged as the loop takes tokens, half a window at a time", async () => {
  const server = await fake({ plan: say(...long) });
  const stream = client_of(server).create({ input: "", window: 10 });
  let taken = 0;
  for await (const { seq } of stream) {
    assert.ok(stream.seq <= taken + 15, `${stream.seq} have come, ${taken} are taken`);
    if (seq % 20 === 0) await pause(30);
    taken = seq;
  }
  assert.equal(text_of(stream), whole);
  const acks = frames_of(server, "response.ack").map(({ seq }) => seq);
  assert.ok(acks.length > 5);
  acks.forEach((seq, i) => assert.ok(seq - (acks[i - 1] ?? 0) >= 5));
});

test("a window without a loop is acknowledged by its listeners, on a second connection too", async () => {
  const server = await fake({ plan: say(...long) });
  const stream = client_of(server).create({ input: "", window: 3 });
  for (const tokens of [20, 60]) {
    await arrived(stream, tokens);
    server.drop();
  }
  assert.equal((await stream.done).status, "completed");
  assert.equal(text_of(stream), whole);
});

/** One client with two streams, whose connections are cut up to four times where the seed says. */
async function life(server, cuts, seed) {
  const random = seeded(seed);
  const integer = (least, most) => least + Math.floor(random() * (most - least + 1));
  const token = `life-${seed}`;
  const bearer = Buffer.from(token).toString("base64url");
  let left = integer(1, 4);
  let first = true;
  cuts.set(bearer, () => {
    const least = first ? 1 : 0;
    first = false;
    if (left-- <= 0) return undefined;
    return random() < 0.5 ? { frames: integer(least, 30) } : { bytes: integer(least * 500, 3_000) };
  });
  const client = client_of(server, { token });
  const streams = [0, 1].map(() => {
    const words = ["a", "ß ", "水", "🦦", "otter", ""];
    const pieces = Array.from({ length: integer(5, 40) }, () => {
      return { delta: words[integer(0, words.length - 1)], n: integer(1, 3) };
    });
    const window = random() < 0.5 ? { window: integer(3, 12) } : {};
    return client.create({ input: pieces, ...window });
  });
  for (const stream of streams) {
    const { status, error } = await stream.done;
    const pieces = stream.request.input;
    const text = pieces.map(({ delta }) => delta).join("");
    if (status === "completed") {
      assert.equal(text_of(stream), text, token);
      let seq = 0;
      for (const delta of stream.deltas) assert.equal(delta.seq - delta.n, seq, token), (seq = delta.seq);
      assert.equal(seq, stream.seq, token);
    } else {
      assert.match(error.message, /not known, so it is not sent again/, token);
      assert.equal(stream.response_id, null, `${token}: ${error.code}`);
    }
  }
  client.close();
  return streams.filter(({ result }) => result.status === "completed").length;
}

test("a thousand short lives, cut anywhere: no gap, no repeat, the whole text, no job twice", async () => {
  const server = await fake({ plan: ({ input }) => ({ pieces: input, gap_ms: () => 1 }) });
  const cuts = new Map();
  server.cut = (offered) => cuts.get(offered.split("bearer.")[1])?.();
  let completed = 0;
  for (let seed = 0; seed < 1_000; seed += 50) {
    const lives = Array.from({ length: 50 }, (_, i) => life(server, cuts, drawn(seed + i)));
    for (const whole of await Promise.all(lives)) completed += whole;
  }
  const creates = frames_of(server, "response.create").length;
  assert.ok(creates <= 2_000, `${creates} requests of 2000 streams`);
  assert.ok(completed > 1_800, `${completed} completed`);
  assert.ok(frames_of(server, "response.resume").length > 1_000);
});
