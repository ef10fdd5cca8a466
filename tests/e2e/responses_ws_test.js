// The WebSocket mode of the Responses API, with OpenAI's client.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

import { all_cancelled, sim, skip, some_job_is } from "./openai_kit.js";

const ends = ["response.completed", "response.incomplete", "response.failed"];

/** A connection; ask() resolves with the events that answer one message. */
function connect(server) {
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
  const socket = new ResponsesWS(openai);
  const heard = [];
  let news = () => {};
  const take = (event) => {
    heard.push(event);
    news();
  };
  socket.on("event", take);
  // an event of the type error came as an event, too
  socket.on("error", (e) => { if (!e.error) take({ type: "lost", message: e.message }); });
  const next = async () => {
    while (heard.length === 0) await new Promise((resolve) => { news = resolve; });
    return heard.shift();
  };
  const ask = async (body) => {
    socket.send({ type: "response.create", model: "sim", max_output_tokens: 5, ...body });
    const events = [await next()];
    while (![...ends, "error", "lost"].includes(events.at(-1).type)) events.push(await next());
    return events;
  };
  return { ask, next, socket };
}

describe("responses over a WebSocket", { skip }, () => {
  let server;
  before(async () => {
    server = await sim("rate=2000,prefill=1000000");
  });

  test("turns follow one another, and nothing is stored", async () => {
    const { ask, socket } = connect(server);
    const warm = await ask({ instructions: "be brief", input: [], generate: false, store: false });
    assert.deepEqual(warm.map(({ type }) => type),
      ["response.created", "response.in_progress", "response.completed"]);
    let last = warm.at(-1).response;
    let tokens = 0;
    for (const input of ["one", "two", "three"]) {
      const events = await ask({ input, store: false, previous_response_id: last.id });
      assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
      last = events.at(-1).response;
      assert.ok(last.usage.input_tokens > tokens);
      tokens = last.usage.input_tokens;
    }
    assert.equal((await fetch(`${server.url}/v1/responses/${last.id}`)).status, 404);
    socket.close();
  });

  test("a refusal is an event, and the connection goes on", async () => {
    const { ask, socket } = connect(server);
    const [no, ...rest] = await ask({ input: "x", previous_response_id: "resp_1" });
    assert.deepEqual([no.type, no.status, no.error.code, rest.length],
      ["error", 400, "previous_response_not_found", 0]);
    const events = await ask({ input: "x" });
    assert.equal(events.at(-1).type, "response.incomplete");
    socket.close();
  });

  test("closing the connection cancels the answer", async () => {
    const slow = await sim("rate=100,prefill=1000000");
    const { next, socket } = connect(slow);
    socket.send({ type: "response.create", model: "sim", input: "x", max_output_tokens: 1_000_000 });
    await next();
    await some_job_is(slow, "decoding");
    socket.close();
    await all_cancelled(slow);
  });
});
