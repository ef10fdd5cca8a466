// The Responses API with memory, with OpenAI's client: kept responses, the background, streams that go on.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import OpenAI from "openai";

import { post, sim, skip, some_job_is, until, user } from "./openai_kit.js";

const model = "sim";

describe("responses", { skip }, () => {
  let server, openai;
  before(async () => {
    server = await sim("rate=2000,prefill=1000000");
    openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  });

  test("a response is kept, gone on with, listed and deleted", async () => {
    const first = await openai.responses.create({ model, input: "hello", max_output_tokens: 5 });
    const again = await openai.responses.retrieve(first.id);
    assert.deepEqual([again.id, again.output, again.usage], [first.id, first.output, first.usage]);
    const second = await openai.responses.create(
      { model, input: "and then?", previous_response_id: first.id, max_output_tokens: 5 });
    const whole = await openai.responses.create({
      model, store: false, max_output_tokens: 5,
      input: [user("hello"), ...first.output, user("and then?")],
    });
    assert.equal(second.usage.input_tokens, whole.usage.input_tokens);
    const items = [];
    for await (const item of openai.responses.inputItems.list(second.id, { limit: 1, order: "asc" }))
      items.push(item);
    assert.deepEqual(items.map(({ type }) => type), ["message"]);
    assert.equal(items[0].content[0].text, "and then?");
    await openai.responses.delete(first.id);
    await assert.rejects(openai.responses.retrieve(first.id), { status: 404 });
    await assert.rejects(
      openai.responses.create({ model, input: "x", previous_response_id: second.id }),
      { status: 400, code: "previous_response_not_found" });
  });

  test("an item is named by its id", async () => {
    const first = await openai.responses.create({ model, input: "hello", max_output_tokens: 5 });
    const second = await openai.responses.create({
      model, max_output_tokens: 5,
      input: [{ type: "item_reference", id: first.output[0].id }, user("and then?")],
    });
    assert.ok(second.usage.input_tokens > 0);
  });

  test("an answer in the background is polled", async () => {
    const begun = await openai.responses.create(
      { model, input: "x", max_output_tokens: 50, background: true });
    assert.equal(begun.status, "in_progress");
    const ended = await until(async () => {
      const now = await openai.responses.retrieve(begun.id);
      return now.status !== "in_progress" && now;
    });
    assert.equal(ended.usage.output_tokens, 50);
  });

  test("an answer in the background is cancelled", async () => {
    const begun = await openai.responses.create(
      { model, input: "x", max_output_tokens: 1_000_000, background: true });
    await some_job_is(server, "decoding");
    const cancelled = await openai.responses.cancel(begun.id);
    assert.equal(cancelled.status, "cancelled");
    assert.equal((await openai.responses.retrieve(begun.id)).status, "cancelled");
  });

  test("a stream in the background goes on behind the event that the client has", async () => {
    const events = [];
    const stream = await openai.responses.create(
      { model, input: "x", max_output_tokens: 300, background: true, stream: true });
    for await (const event of stream) {
      events.push(event);
      if (events.length === 20) break;
    }
    const { id } = events[0].response;
    const rest = await openai.responses.retrieve(
      id, { stream: true, starting_after: events.at(-1).sequence_number });
    for await (const event of rest) events.push(event);
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
    assert.equal(events.at(-1).type, "response.incomplete");
    const text = events.filter(({ type }) => type === "response.output_text.delta")
      .map(({ delta }) => delta).join("");
    assert.equal(text, (await openai.responses.retrieve(id)).output_text);
  });

  test("a cancel needs no body, and no type of one", async () => {
    const begun = await (await post(server, "/v1/responses",
      { input: "x", max_output_tokens: 1_000_000, background: true })).json();
    const answer = await fetch(`${server.url}/v1/responses/${begun.id}/cancel`, { method: "POST" });
    assert.equal(answer.status, 200);
  });
});
