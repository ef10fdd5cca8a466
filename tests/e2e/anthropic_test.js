// Anthropic's own client, against the real server: what it reads of messages, streams, counts and errors.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";

import { start_real } from "./real_server.js";

const skip = process.env.WEIR_BIN ? false : "WEIR_BIN is not set";
const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });
const model = "rill";
const sum = { model, max_tokens: 50, temperature: 0, messages: [user("What is 12 + 30?")] };

const client_of = (server, options = {}) =>
  new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0, ...options });

const prompt_tokens = (usage) =>
  usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;

/** The jobs that are not over. */
async function running(server, headers = {}) {
  const { jobs } = await (await fetch(`${server.url}/v1/jobs`, { headers })).json();
  return jobs.filter(({ state }) => state !== "finished");
}

async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe("a conversation with Anthropic's client", { skip }, () => {
  let server, client;
  before(async () => {
    server = await start_real({ args: [] });
    client = client_of(server);
  });
  after(() => server?.stop());

  test("an answer, whole", async () => {
    const message = await client.messages.create(sum);
    assert.match(message.id, /^msg_[0-9a-f]{32}$/);
    assert.match(message._request_id, /^[0-9a-f]{32}$/);
    assert.deepEqual(
      { ...message, id: undefined, usage: undefined },
      {
        id: undefined,
        type: "message",
        role: "assistant",
        model,
        content: [{ type: "text", text: "42", citations: null }],
        stop_reason: "end_turn",
        stop_sequence: null,
        stop_details: null,
        container: null,
        diagnostics: null,
        usage: undefined,
      },
    );
  });

  test("an answer, streamed: raw events in their order", async () => {
    const types = [];
    let text = "";
    for await (const event of await client.messages.create({ ...sum, stream: true })) {
      if (types.at(-1) !== event.type) types.push(event.type);
      if (event.type === "content_block_delta") text += event.delta.text;
    }
    assert.deepEqual(types, [
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    assert.equal(text, "42");
  });

  test("an answer, streamed: the message that the client puts together is the whole one", async () => {
    const pieces = [];
    const stream = client.messages.stream(sum).on("text", (piece) => pieces.push(piece));
    const streamed = await stream.finalMessage();
    const whole = await client.messages.create(sum);
    assert.equal(pieces.join(""), "42");
    assert.match(stream.request_id, /^[0-9a-f]{32}$/);
    assert.deepEqual(streamed.content, whole.content);
    assert.equal(streamed.stop_reason, whole.stop_reason);
    assert.equal(prompt_tokens(streamed.usage), prompt_tokens(whole.usage));
    assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens);
  });

  test("a system prompt is kept to, as text and as blocks", async () => {
    const asked = { ...sum, messages: [user("What day comes after Monday?")] };
    const hint = { type: "ephemeral" };
    for (const system of [
      "Answer in capitals.",
      [
        { type: "text", text: "Answer " },
        { type: "text", text: "in capitals.", cache_control: hint },
      ],
    ]) {
      const { content } = await client.messages.create({ ...asked, system, cache_control: hint });
      assert.equal(content[0].text, "TUESDAY");
    }
  });

  test("a conversation goes on with the content that came back", async () => {
    const messages = [user([{ type: "text", text: "My name is Zoë." }])];
    const first = await client.messages.create({ ...sum, messages });
    messages.push(assistant(first.content), user("What is my name?"));
    const second = await client.messages.create({ ...sum, messages });
    assert.equal(second.content[0].text, "Your name is Zoë.");
    const prompt = (usage) => usage.input_tokens + usage.cache_read_input_tokens;
    assert.ok(prompt(second.usage) > prompt(first.usage) + first.usage.output_tokens);
  });

  test("an answer goes on with a last message of the assistant", async () => {
    const messages = [...sum.messages, assistant("4")];
    const { content, stop_reason } = await client.messages.create({ ...sum, messages });
    assert.equal(content[0].text, "2");
    assert.equal(stop_reason, "end_turn");
  });

  test("stop reasons", async () => {
    const story = { ...sum, messages: [user("Tell me a funny story about a fox named Ada.")] };
    const short = await client.messages.create({ ...story, max_tokens: 5 });
    assert.equal(short.stop_reason, "max_tokens");
    assert.equal(short.usage.output_tokens, 5);
    const stop_sequences = ["never", " Ada"];
    for (const stream of [false, true]) {
      const cut = await (stream
        ? client.messages.stream({ ...story, stop_sequences }).finalMessage()
        : client.messages.create({ ...story, stop_sequences }));
      assert.equal(cut.stop_reason, "stop_sequence");
      assert.equal(cut.stop_sequence, " Ada");
      assert.ok(!cut.content[0].text.includes(" Ada"));
    }
    const long = await client.messages.create({ ...story, max_tokens: 20000, ignore_eos: true });
    assert.equal(long.stop_reason, "model_context_window_exceeded");
    assert.equal(prompt_tokens(long.usage) + long.usage.output_tokens, 2048);
  });

  test("tokens are counted as usage reports them", async () => {
    const prompts = [
      { messages: sum.messages },
      { messages: [user("Hello!"), assistant("Hello."), user("What is my name?")], system: "Be brief." },
      { messages: [user("What is 12 + 30?"), assistant("4")] },
    ];
    for (const prompt of prompts) {
      const { input_tokens } = await client.messages.countTokens({ model, ...prompt });
      for (let i = 0; i < 2; i++) {
        const { usage } = await client.messages.create({ ...sum, ...prompt });
        assert.equal(prompt_tokens(usage), input_tokens);
      }
    }
  });

  test("sampling fields, Anthropic's and weir's", async () => {
    const asked = { ...sum, messages: [user("List ten birds.")], temperature: 1, top_k: 50, top_p: 0.95 };
    const say = async (seed) => (await client.messages.create({ ...asked, seed, min_p: 0.01 })).content;
    assert.deepEqual(await say(3), await say(3));
    const metadata = { user_id: "me" };
    const thinking = { type: "disabled" };
    const { content } = await client.messages.create({ ...sum, metadata, thinking, service_tier: "auto" });
    assert.equal(content[0].text, "42");
  });

  test("what the server does not have is refused by its name", async () => {
    const source = { type: "base64", media_type: "application/pdf", data: "" };
    const rows = {
      tools: { tools: [{ name: "f", input_schema: { type: "object" } }] },
      thinking: { thinking: { type: "often" } },
      document: { messages: [user([{ type: "document", source }])] },
      container: { container: "c" },
      max_tokens: { max_tokens: 0 },
      temperature: { temperature: 3 },
      stop_sequences: { stop_sequences: [""] },
    };
    for (const [name, fields] of Object.entries(rows))
      await assert.rejects(client.messages.create({ ...sum, ...fields }), (error) => {
        assert.ok(error instanceof Anthropic.BadRequestError, String(error));
        assert.equal(error.type, "invalid_request_error");
        assert.ok(error.message.includes(name), error.message);
        return true;
      });
  });
});

describe("the errors and limits that Anthropic's client tells apart", { skip }, () => {
  const key = "open-sesame-0123456789";
  // The client wants an answer of more than 21,333 tokens streamed.
  const endless = { model: "sim", max_tokens: 20000, messages: [user("hi")] };
  let server, client, folder;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "weir-anthropic-"));
    writeFileSync(join(folder, "keys"), key + "\n");
    const limits = ["--queue", "0", "--max-batch", "1", "--max-body", "4096"];
    server = await start_real({
      args: ["--device", "sim", "--api-key-file", join(folder, "keys"), ...limits],
    });
    client = client_of(server, { apiKey: key });
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true });
  });

  const by_header = (name, value) =>
    client_of(server, { apiKey: key, defaultHeaders: { authorization: null, [name]: value } });
  const idle = () => until(async () => (await running(server, { "x-api-key": key })).length === 0);

  async function check_error(call, kind, status, type) {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof kind, String(error));
      assert.equal(error.status, status);
      assert.equal(error.type, type);
      assert.equal(error.requestID, error.error.request_id);
      assert.match(error.requestID, /^[0-9a-f]{32}$/);
      return true;
    });
  }

  test("a key, in either header", async () => {
    const one = { ...endless, max_tokens: 1 };
    assert.equal((await client.messages.create(one)).usage.output_tokens, 1);
    assert.equal((await by_header("x-api-key", key).messages.create(one)).usage.output_tokens, 1);
    const strangers = [client_of(server, { apiKey: "barley" }), by_header("x-api-key", "barley")];
    for (const stranger of strangers) {
      const refused = stranger.messages.create(one);
      await check_error(refused, Anthropic.AuthenticationError, 401, "authentication_error");
    }
  });

  test("a status has its class and its type", async () => {
    const ask = (fields) => client.messages.create({ ...endless, max_tokens: 1, ...fields });
    await check_error(ask({ messages: [] }), Anthropic.BadRequestError, 400, "invalid_request_error");
    await check_error(ask({ model: "other" }), Anthropic.NotFoundError, 404, "not_found_error");
    const long = ask({ messages: [user("x".repeat(5000))] });
    await check_error(long, Anthropic.APIError, 413, "request_too_large");
    const answer = await fetch(`${server.url}/v1/stream/tokens`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: "{}",
    });
    const { token } = await answer.json();
    const page = client_of(server, { apiKey: token });
    const refused = page.messages.create({ ...endless, max_tokens: 1 });
    await check_error(refused, Anthropic.PermissionDeniedError, 403, "permission_error");
  });

  test("a full server is a rate limit, and the client comes again when it may", async () => {
    const stream = client.messages.stream(endless);
    await new Promise((resolve) => stream.once("text", resolve));
    const one = { ...endless, max_tokens: 1 };
    await check_error(client.messages.create(one), Anthropic.RateLimitError, 429, "rate_limit_error");
    const patient = client_of(server, { apiKey: key, maxRetries: 10 }).messages.create(one);
    stream.on("abort", () => {}).abort();
    assert.equal((await patient).usage.output_tokens, 1);
  });

  test("an abort ends the job, before the first token and after it", async () => {
    const stream = client.messages.stream(endless);
    await new Promise((resolve) => stream.once("text", resolve));
    stream.abort();
    await assert.rejects(stream.done(), Anthropic.APIUserAbortError);
    await idle();
    const early = new AbortController();
    const whole = client.messages.create(endless, { signal: early.signal });
    await until(async () => (await running(server, { "x-api-key": key })).length === 1);
    early.abort();
    await assert.rejects(whole, Anthropic.APIUserAbortError);
    await idle();
  });

  test("a client that has waited too long says so, and takes its job along", async () => {
    const late = client.messages.create(endless, { timeout: 300 });
    await assert.rejects(late, Anthropic.APIConnectionTimeoutError);
    await idle();
  });

  test("a server that is gone is a connection error", async () => {
    const gone = await start_real();
    await gone.stop();
    await assert.rejects(client_of(gone).messages.create(endless), Anthropic.APIConnectionError);
  });

  test("a fault is a status, or an error in the middle of a stream", async (t) => {
    const faulty = await start_real({ args: ["--device", "sim:fault=sampler@20-21"] });
    t.after(() => faulty.stop());
    const unlucky = client_of(faulty);
    let text = "";
    const stream = unlucky.messages.stream(endless).on("text", (piece) => (text += piece));
    await assert.rejects(stream.done(), (error) => {
      assert.ok(error instanceof Anthropic.APIError);
      assert.equal(error.type, "api_error");
      return true;
    });
    assert.equal(text.trim().split(" ").length, 19);
    await check_error(unlucky.messages.create(endless), Anthropic.InternalServerError, 500, "api_error");
  });
});
