// The official client of OpenAI's API: what it sends is taken, and what it gets is what its types say.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";

import OpenAI from "openai";

import { rill, sim, skip, user } from "./openai_kit.js";

const id_of_a = (prefix) => new RegExp(`^${prefix}-[0-9a-f]{32}$`);

/** The texts of a stream's choices, by index, and its other parts. */
async function read(stream, text_of) {
  const texts = [], reasons = [], ids = new Set(), fingerprints = new Set(), created = new Set();
  let usage = null, chunks = 0;
  for await (const chunk of stream) {
    chunks++;
    ids.add(chunk.id);
    fingerprints.add(chunk.system_fingerprint);
    created.add(chunk.created);
    if (chunk.usage) usage = chunk.usage;
    for (const choice of chunk.choices) {
      texts[choice.index] = (texts[choice.index] ?? "") + (text_of(choice) ?? "");
      if (choice.finish_reason) reasons[choice.index] = choice.finish_reason;
    }
  }
  for (const same of [ids, fingerprints, created]) assert.equal(same.size, 1, "the same in each chunk");
  return { texts, reasons, usage, chunks, id: [...ids][0], fingerprint: [...fingerprints][0] };
}
const said = (choice) => choice.delta.content;
const written = (choice) => choice.text;

describe("openai: chat", { skip }, () => {
  let client, server;
  before(async () => {
    server = await rill();
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  const asked = { model: "rill", messages: [user("What is 12 + 30?")], temperature: 0 };

  test("an answer has everything that the client's type names", async () => {
    const { data, response } = await client.chat.completions.create(asked).withResponse();
    assert.match(data.id, id_of_a("chatcmpl"));
    assert.equal(data.object, "chat.completion");
    assert.ok(Math.abs(data.created - Date.now() / 1000) < 60, `${data.created}`);
    assert.equal(data.model, "rill");
    assert.match(data.system_fingerprint, /^fp_[0-9a-f]+$/);
    assert.deepEqual(data.choices, [{
      index: 0, message: { role: "assistant", content: "42", refusal: null }, logprobs: null,
      finish_reason: "stop",
    }]);
    const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details } = data.usage;
    assert.ok(prompt_tokens > 10 && completion_tokens > 1);
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
    assert.equal(typeof prompt_tokens_details.cached_tokens, "number");
    assert.equal(data._request_id, response.headers.get("x-request-id"));
    assert.match(data._request_id, /^[0-9a-f]+$/);
  });

  test("a stream is the same answer in pieces, and its usage comes last where it is asked for", async () => {
    const whole = await client.chat.completions.create(asked);
    for (const include_usage of [false, true]) {
      const stream = await client.chat.completions.create(
        { ...asked, stream: true, stream_options: { include_usage } });
      const got = await read(stream, said);
      assert.deepEqual(got.texts, ["42"]);
      assert.deepEqual(got.reasons, ["stop"]);
      assert.match(got.id, id_of_a("chatcmpl"));
      assert.equal(got.fingerprint, whole.system_fingerprint);
      assert.equal(got.usage?.completion_tokens, include_usage ? whole.usage.completion_tokens : undefined);
    }
  });

  test("the client's own reader of streams puts the message together", async () => {
    const runner = client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.content, "42");
    assert.equal(final.choices[0].message.refusal, null);
    assert.equal(final.choices[0].finish_reason, "stop");
    assert.ok(final.usage.total_tokens > 0);
  });

  test("a stream's headers: no cache keeps it, no proxy collects it", async () => {
    const streamed = { ...asked, stream: true };
    const { data, response } = await client.chat.completions.create(streamed).withResponse();
    await read(data, said);
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.equal(response.headers.get("x-accel-buffering"), "no");
    assert.match(response.headers.get("x-request-id"), /^[0-9a-f]+$/);
  });

  test("a developer's message, parts, names and an answer that goes back are a conversation", async () => {
    const ask = (messages) => client.chat.completions.create({ ...asked, messages });
    const content_of = async (messages) => (await ask(messages)).choices[0].message.content;
    const day = user("What day comes after Monday?");
    const by_system = await content_of([{ role: "system", content: "Answer in capitals." }, day]);
    assert.equal(by_system, "TUESDAY");
    assert.equal(await content_of([{ role: "developer", content: "Answer in capitals." }, day]), by_system);
    const parts = [{ type: "text", text: "What is 12 " }, { type: "text", text: "+ 30?" }];
    assert.equal(await content_of([{ ...user(parts), name: "zoe" }]), "42");
    const first = (await ask([user("My name is Zoë.")])).choices[0].message;
    assert.equal(await content_of([user("My name is Zoë."), first, user("What is my name?")]),
      "Your name is Zoë.");
  });

  test("fields without an effect are taken", async () => {
    const answer = await client.chat.completions.create({
      ...asked, user: "u", metadata: { a: "b" }, store: false, service_tier: "auto", n: 1, logit_bias: {},
      max_completion_tokens: 20, parallel_tool_calls: true, response_format: { type: "text" }, seed: 5,
      presence_penalty: 0, frequency_penalty: 0, top_p: 1, logprobs: false, safety_identifier: "s",
      prompt_cache_key: "k", modalities: ["text"], stop: null,
    });
    assert.equal(answer.choices[0].message.content, "42");
  });

  test("max_completion_tokens, stop and logit_bias end or bend the answer", async () => {
    const cut = await client.chat.completions.create({ ...asked, max_completion_tokens: 1 });
    assert.equal(cut.choices[0].finish_reason, "length");
    assert.equal(cut.usage.completion_tokens, 1);
    for (const stop of ["2", ["x", "2"]]) {
      const stopped = await client.chat.completions.create({ ...asked, stop });
      assert.equal(stopped.choices[0].message.content, "4");
      assert.equal(stopped.choices[0].finish_reason, "stop");
    }
    const { ids } = await (await fetch(`${server.url}/v1/tokenize`, {
      method: "POST", headers: { "content-type": "application/json" },
      body: JSON.stringify({ text: "42", add_special: false }),
    })).json();
    const bent = await client.chat.completions.create({ ...asked, logit_bias: { [ids[0]]: -100 } });
    assert.notEqual(bent.choices[0].message.content, "42");
  });

  test("models are listed and found", async () => {
    const { data } = await client.models.list();
    const shown = data.map((model) => [model.id, model.object, model.owned_by]);
    assert.deepEqual(shown, [["rill", "model", "weir"]]);
    assert.equal((await client.models.retrieve("rill")).created, data[0].created);
  });
});

describe("openai: completions and choices", { skip }, () => {
  let client;
  before(async () => {
    const server = await sim();
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  });

  test("a completion has everything that the client's type names", async () => {
    const answer = await client.completions.create({ model: "sim", prompt: "hello", max_tokens: 5, seed: 1 });
    assert.match(answer.id, id_of_a("cmpl"));
    assert.equal(answer.object, "text_completion");
    assert.match(answer.system_fingerprint, /^fp_/);
    const [choice] = answer.choices;
    assert.deepEqual({ ...choice, text: choice.text.length },
      { index: 0, text: 25, logprobs: null, finish_reason: "length" });
    assert.deepEqual(answer.usage, { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10,
      prompt_tokens_details: { cached_tokens: 0 } });
  });

  test("n 3 is three answers to one prompt, streamed and not", async () => {
    const asked = { model: "sim", messages: [user("hi")], max_tokens: 8, n: 3 };
    const whole = await client.chat.completions.create(asked);
    assert.deepEqual(whole.choices.map((choice) => choice.index), [0, 1, 2]);
    assert.equal(new Set(whole.choices.map((choice) => choice.message.content)).size, 3);
    assert.equal(whole.usage.completion_tokens, 24);
    const stream = await client.chat.completions.create(
      { ...asked, stream: true, stream_options: { include_usage: true } });
    const got = await read(stream, said);
    assert.equal(new Set(got.texts).size, 3);
    got.texts.forEach((text) => assert.match(text, /^(w\d{3} ){8}$/));
    assert.deepEqual(got.reasons, ["length", "length", "length"]);
    assert.deepEqual(got.usage, { ...whole.usage, prompt_tokens_details: got.usage.prompt_tokens_details });
  });

  // The simulated tokenizer spells text and ids differently, so that one can tell what comes back.
  const spelled = ["w104 w101 w108 w108 w111 ", "w121 w111 w117 "];
  const given = [
    ["strings", ["hello", "you"], ["hello", "you"]],
    ["lists of ids", [[104, 101, 108, 108, 111], [121, 111, 117]], spelled],
  ];
  for (const [what, prompt, [first, second]] of given)
    test(`a list of ${what} is answered prompt by prompt, with echo in front`, async () => {
      const asked = { model: "sim", prompt, max_tokens: 4, n: 2, best_of: 2, seed: 3, echo: true };
      const whole = await client.completions.create(asked);
      const alone = await client.completions.create({ model: "sim", prompt: "you", max_tokens: 4, seed: 3 });
      const answer = alone.choices[0].text;
      const texts = [first, first, second, second].map((text) => text + answer);
      assert.deepEqual(whole.choices.map((choice) => [choice.index, choice.text]), [...texts.entries()]);
      assert.equal(whole.usage.prompt_tokens, 8);
      assert.equal(whole.usage.completion_tokens, 16);
      const stream = await client.completions.create(
        { ...asked, stream: true, stream_options: { include_usage: true } });
      const got = await read(stream, written);
      assert.deepEqual(got.texts, texts);
      assert.equal(got.reasons.length, 4);
      assert.match(got.id, id_of_a("cmpl"));
      assert.equal(got.usage.total_tokens, 24);
    });
});
