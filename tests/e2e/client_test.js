// weir.js in Node, against the scripted server, on one connection. resume_test.js tests lost connections.
import assert from "node:assert/strict";
import { after, mock, test } from "node:test";
import { client_of, fake, pause, say, state, weir } from "./client_kit.js";

const { connect } = weir;

test("a stream yields every delta in order and one result", async () => {
  const client = client_of(
    await fake({ plan: say({ delta: "Ot" }, { delta: "ters ", n: 3 }, { delta: "swim" }) }),
  );
  const stream = client.create({ input: "hello" });
  const seen = [];
  for await (const { text, seq, n } of stream) seen.push([text, seq, n]);
  assert.deepEqual(seen, [
    ["Ot", 1, 1],
    ["ters ", 4, 3],
    ["swim", 5, 1],
  ]);
  const result = await stream.done;
  assert.equal(result.status, "completed");
  assert.equal(result.usage.output_tokens, 5);
  assert.equal(client.session.models[0], "story-teller");
});

test("every field of a request is sent as it is, on a lane of the client's choosing", async () => {
  const server = await fake({ plan: say({ delta: "x" }) });
  const client = client_of(server);
  const request = { input: [1, 2, 3], top_k: 4, stop: ["a"], seed: 7 };
  await client.create(request).done;
  await client.create({ input: "again" }).done;
  const [first, second] = server.received.filter(({ type }) => type === "response.create");
  assert.deepEqual(first, { ...request, type: "response.create", id: "1" });
  assert.equal(second.id, "2");
});

test("logprobs come with the delta of their tokens, as the server sent them", async () => {
  const logprobs = [
    { id: 5, token: "a", logprob: -0.25, top: [{ id: 5, token: "a", logprob: -0.25 }] },
    { id: 6, token: "\ufffd", logprob: -1.5, bytes: [226], top: [] },
  ];
  const server = await fake({ plan: say({ delta: "a", n: 2, logprobs }, { delta: "b" }) });
  const stream = client_of(server).create({ input: "", logprobs: 1 });
  await stream.done;
  assert.equal(server.received.find(({ type }) => type === "response.create").logprobs, 1);
  assert.deepEqual(
    stream.deltas.map((delta) => delta.logprobs),
    [logprobs, undefined],
  );
});

const calls = [
  { part: "reasoning", delta: "I " },
  { part: "reasoning", delta: "add.", n: 2 },
  { parts: [{ part: "reasoning", delta: "" }, { part: "text", delta: "See" }] },
  { part: "text", delta: ": " },
  { part: "arguments", delta: "{", call: { index: 0, id: "call_a", name: "add" } },
  { part: "arguments", delta: "}", call: { index: 0 } },
  { part: "arguments", delta: "[]", call: { index: 1, id: "call_b", name: "list" } },
];
const parts = [
  { part: "reasoning", text: "I add.", n: 4 },
  { part: "text", text: "See: ", n: 1 },
  { part: "arguments", text: "{}", n: 2, call: { index: 0, id: "call_a", name: "add" } },
  { part: "arguments", text: "[]", n: 1, call: { index: 1, id: "call_b", name: "list" } },
];

test("an answer in parts: the stream has them, and its text is that of the parts of text", async () => {
  const stream = client_of(await fake({ plan: say(...calls) })).create({ input: "", reasoning: "separate" });
  const seen = [];
  for await (const delta of stream) for (const piece of delta.parts) weir.add_part(seen, piece);
  assert.deepEqual(stream.parts, parts);
  assert.deepEqual(
    seen.map(({ part, text }) => [part, text]),
    parts.map(({ part, text }) => [part, text]),
  );
  assert.equal(stream.text, "See: ");
  assert.equal(stream.deltas.map(({ text }) => text).join(""), "See: ");
  assert.equal(stream.saved.text, undefined);
  assert.deepEqual(stream.saved.parts, parts);
});

test("an answer in parts goes on in the middle of a part", async () => {
  for (const hold_at of [1, 2, 3, 5, 7]) {
    const server = await fake({ plan: say(...calls), hold_at });
    const first = client_of(server).create({ input: "", reasoning: "separate" });
    while (first.seq < [1, 3, 4, 5, 6, 7, 8][hold_at - 1]) await pause(1);
    const saved = JSON.parse(JSON.stringify(first));
    const second = client_of(server).resume(saved);
    server.release();
    await second.done;
    assert.deepEqual(second.parts, parts);
    assert.equal(second.text, "See: ");
  }
});

test("an answer without parts is one part of text", async () => {
  const stream = client_of(await fake({ plan: say({ delta: "a" }, { delta: "b" }) })).create({ input: "" });
  assert.deepEqual(stream.parts, []);
  await stream.done;
  assert.deepEqual(stream.parts, [{ part: "text", text: "ab", n: 2 }]);
  assert.deepEqual(stream.saved.text, "ab");
});

test("a delta says whether the server had waited for this client's window", async () => {
  const pieces = Array.from({ length: 12 }, () => ({ delta: "x" }));
  const server = await fake({ plan: () => ({ pieces, gap_ms: () => 0 }) });
  const stream = client_of(server).create({ input: "", window: 4 });
  for await (const { seq } of stream)
    while (seq === 1 && stream.seq < 4) await pause(1); // nothing is taken before the window is full
  const held = stream.deltas.filter((delta) => delta.held);
  assert.ok(stream.deltas.slice(0, 4).every((delta) => !delta.held), "the window had room");
  assert.ok(held.length > 0);
  assert.ok(held.every(({ seq, n }) => seq - n >= 4));
  const free = client_of(server).create({ input: "" });
  await free.done;
  assert.ok(free.deltas.every((delta) => !delta.held), "there is no window");
});

test("an iterator made after the end still starts with the first delta", async () => {
  const client = client_of(await fake({ plan: say({ delta: "a" }, { delta: "b" }) }));
  const stream = client.create({ input: "" });
  await stream.done;
  const texts = [];
  for await (const { text } of stream) texts.push(text);
  assert.equal(texts.join(""), "ab");
});

test("streams on one socket do not mix", async () => {
  const server = await fake({
    plan: ({ input }) => ({ pieces: Array(30).fill({ delta: input }), gap_ms: () => 1 }),
  });
  const client = client_of(server);
  const streams = ["a", "b", "c", "d", "e", "f", "g", "h"].map((input) => client.create({ input }));
  await Promise.all(streams.map(({ done }) => done));
  for (const { deltas, request } of streams)
    assert.equal(deltas.map(({ text }) => text).join(""), request.input.repeat(30));
});

for (const [code, pieces] of [
  ["gap", [{ delta: "a" }, { delta: "c", seq: 3 }, { delta: "d" }]],
  ["gap", [{ delta: "a" }, { delta: "bcd", seq: 5, n: 3 }]],
  ["repeat", [{ delta: "a" }, { delta: "b" }, { delta: "b", seq: 2 }]],
])
  test(`a ${code} in seq ends the stream before wrong text is shown, frame ${pieces.length}`, async () => {
    const server = await fake({ plan: say(...pieces) });
    const stream = client_of(server).create({ input: "" });
    const { status, error } = await stream.done;
    assert.equal(status, "failed");
    assert.equal(error.code, code);
    const good = pieces.findIndex(({ seq }) => seq !== undefined);
    assert.equal(stream.deltas.length, good);
    await pause(20);
    assert.equal(stream.deltas.length, good, "what comes after is ignored");
    assert.ok(
      server.received.some(({ type }) => type === "response.cancel"),
      "and the server is told to stop",
    );
  });

test("an end that counts more tokens than came is a gap", async () => {
  const server = await fake({
    plan: () => ({ refuse: { id: "1", type: "response.done", seq: 2, status: "completed" } }),
  });
  const { error } = await client_of(server).create({ input: "" }).done;
  assert.equal(error.code, "gap");
  assert.match(error.message, /Tokens 1 to 2/);
});

test("cancel stops the stream at the server and ends it as cancelled", async () => {
  const server = await fake();
  const stream = client_of(server).create({ input: "", max_tokens: 500 });
  await new Promise((resolve) => stream.on("delta", ({ seq }) => seq === 3 && resolve()));
  stream.cancel();
  stream.cancel();
  const { status, finish_reason } = await stream.done;
  assert.deepEqual([status, finish_reason], ["cancelled", "cancel"]);
  assert.ok(stream.seq < 100);
  stream.cancel();
});

test("leaving the loop cancels the stream", async () => {
  const server = await fake();
  const stream = client_of(server).create({ input: "", max_tokens: 500 });
  for await (const { seq } of stream) if (seq === 2) break;
  assert.equal((await stream.done).status, "cancelled");
});

test("a refused request ends its stream with the server's error, and the next one runs", async () => {
  const refuse = { code: "model_not_found", message: "no model is called «gpt»", param: "model" };
  const server = await fake({ plan: ({ model }) => (model === "gpt" ? { refuse } : say({ delta: "ok" })()) });
  const client = client_of(server);
  const stream = client.create({ input: "", model: "gpt" });
  assert.deepEqual((await stream.done).error, refuse);
  await assert.rejects(
    async () => {
      for await (const _ of stream);
    },
    { name: "WeirError", ...refuse },
  );
  assert.equal((await client.create({ input: "" }).done).status, "completed");
});

test("the back-off doubles, with full jitter, and ends when the server is back", async () => {
  const server = await fake();
  const client = client_of(server);
  await state(client, ({ state }) => state === "open");
  const drawn = mock.method(Math, "random", () => 0.5);
  after(() => drawn.mock.restore());
  await server.stop();
  const waits = [];
  client.on("state", ({ state, retry_ms }) => state === "waiting" && waits.push(retry_ms));
  while (waits.length < 3) await state(client, ({ state }) => state === "waiting");
  assert.deepEqual(waits.slice(0, 3), [125, 250, 500]);
  drawn.mock.mockImplementation(() => 0);
  await fake({ port: server.port });
  client.retry();
  await state(client, ({ state }) => state === "open");
  drawn.mock.restore();
});

test("a stream asked for while nobody answers fails with plain words", async () => {
  const server = await fake();
  await server.stop();
  const client = client_of(server);
  const { error } = await client.create({ input: "" }).done;
  assert.deepEqual(error, { code: "connection_lost", message: "The server is not answering." });
});

test("where the server lives and no connection opens, the words name the likely causes", async () => {
  const server = await fake();
  server.refuse_upgrades = true;
  const { error } = await client_of(server).create({ input: "" }).done;
  assert.equal(error.code, "connection_lost");
  assert.match(error.message, /--allow-origin.*key/);
});

test("a function gives a token before each connection, and its failure is said", async () => {
  const server = await fake({ plan: say({ delta: "in" }) });
  const tokens = ["first", Promise.resolve("second"), Promise.reject(new Error("not logged in"))];
  tokens[2].catch(() => {});
  const client = client_of(server, { token: () => tokens.shift() });
  await client.create({ input: "" }).done;
  server.drop();
  await state(client, ({ state }) => state === "open");
  const tokens_of = (offered) => Buffer.from(offered.split("bearer.")[1], "base64url").toString();
  assert.deepEqual(server.offered.map(tokens_of), ["first", "second"]);
  server.drop();
  await state(client, ({ state }) => state === "connecting");
  const { error } = await state(client, ({ state }) => state === "waiting");
  assert.match(error.message, /not logged in/);
});

test("without a WebSocket the constructor says what to pass", () => {
  assert.throws(() => connect("http://localhost", { WebSocket: null }), /npm install ws.*WebSocket/);
});

test("the key travels in the handshake; a wrong one is not tried again", async () => {
  const server = await fake({ key: "sésame+/", plan: say({ delta: "in" }) });
  const welcome = client_of(server, { token: "sésame+/" }).create({ input: "" });
  assert.equal((await welcome.done).status, "completed");
  const client = client_of(server, { token: "wrong" });
  const { error } = await state(client, ({ state }) => state === "closed");
  assert.equal(error.code, "bad_key");
  assert.equal((await client.create({ input: "" }).done).error.code, "closed");
});

test("close ends every stream", async () => {
  const client = client_of(await fake());
  const stream = client.create({ input: "", max_tokens: 500 });
  await state(client, ({ state }) => state === "open");
  client.close();
  assert.equal((await stream.done).error.code, "closed");
});
