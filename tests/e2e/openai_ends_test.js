// How an answer to the official client of OpenAI's API ends before its time: aborts in every state,
// time-outs, cancels by id, and each class of the client's errors that the server gives cause for.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import OpenAI from "openai";

import { events_of } from "./event_source.js";
import { all_cancelled, jobs_of, post, sim, skip, some_job_is, until, user } from "./openai_kit.js";

const folder = mkdtempSync(join(tmpdir(), "weir-openai-"));
after(() => rmSync(folder, { recursive: true }));

const client_of = (server, more = {}) =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0, ...more });
const endless = { model: "sim", messages: [user("x".repeat(200))], max_tokens: 100_000 };

/** Reads a stream to its end. */
async function drain(stream) {
  for await (const _ of stream);
}

/** What a chunk of a chat, a chunk of a completion or an event of a message says. */
const said_in = (data) => {
  if (data === "[DONE]") return { over: true };
  const { id, choices, message, delta, type } = JSON.parse(data);
  const text = choices?.[0]?.delta?.content ?? choices?.[0]?.text ?? delta?.text ?? "";
  return { id: id ?? message?.id, text, over: type === "message_stop" };
};

describe("answers that outlive their client", { skip }, () => {
  const messages = [user("hi")];
  const asked = { max_tokens: 400, seed: 5, stream: true, on_disconnect: "continue" };
  for (const [path, body] of [
    ["/v1/chat/completions", { messages }],
    ["/v1/completions", { prompt: "hi" }],
    ["/v1/messages", { messages }],
  ])
    test(`${path}: events go on after the last one that came, over lost connection after lost connection`,
      async () => {
        const server = await sim("rate=800,prefill=1000000");
        let id, last = "", text = "", over = false, connections = 0;
        while (!over) {
          const leave = new AbortController();
          const headers = { "content-type": "application/json" };
          const answer = await (connections++ === 0
            ? fetch(server.url + path, {
              method: "POST", headers, body: JSON.stringify({ ...body, ...asked }), signal: leave.signal,
            })
            : fetch(`${server.url}/v1/jobs/${id}/events`, {
              headers: { "last-event-id": last }, signal: leave.signal,
            }));
          assert.equal(answer.status, 200);
          let taken = 0;
          for await (const event of events_of(answer.body)) {
            if (event.comment) continue;
            const said = said_in(event.data);
            id ??= said.id;
            text += said.text ?? "";
            last = event.id || last;
            over = said.over;
            if (++taken === 20 && id) break;
          }
          leave.abort();
        }
        assert.ok(connections > 1);
        assert.equal(last, "400");
        const whole = await post(server, "/v1/completions", { prompt: "x", max_tokens: 400, seed: 5 });
        assert.equal(text, (await whole.json()).choices[0].text);
        assert.equal((await jobs_of(server)).at(-1).finish_reason, "length");
      });
});

describe("openai: aborts", { skip }, () => {
  const states = [
    ["queued", "rate=20,prefill=1000000", ["--max-batch", "1"]],
    ["prefilling", "rate=20,prefill=0.01", []],
    ["decoding", "rate=20,prefill=1000000", []],
  ];
  for (const [state, speed, more] of states)
    for (const stream of [false, true])
      test(`an abort of a job that is ${state} cancels it, ${stream ? "streamed" : "whole"}`, async () => {
        const server = await sim(speed, ...more);
        const client = client_of(server);
        const first = new AbortController(), abort = new AbortController();
        const others = [];
        if (state === "queued") {
          others.push(client.chat.completions.create(endless, { signal: first.signal }).catch((e) => e));
          await some_job_is(server, "decoding");
        }
        const answer = client.chat.completions.create({ ...endless, stream }, { signal: abort.signal });
        const ended = (stream ? answer.then(drain) : answer).then(() => "an answer", (error) => error);
        await some_job_is(server, state);
        abort.abort();
        const outcome = await ended;  // the client's streams end silently where they are aborted
        assert.ok(stream ? outcome === "an answer" || outcome instanceof OpenAI.APIUserAbortError
          : outcome instanceof OpenAI.APIUserAbortError, String(outcome));
        const [line] = await all_cancelled(server, others.length);
        assert.equal(line.finish_reason, "cancel");
        first.abort();
        await Promise.all(others);
        await all_cancelled(server);
      });

  test("a reader that stops in mid-stream cancels the job", async () => {
    const server = await sim("rate=100,prefill=1000000");
    const stream = await client_of(server).chat.completions.create({ ...endless, n: 3, stream: true });
    let seen = 0;
    for await (const chunk of stream) if (chunk.choices[0].delta.content && ++seen === 3) break;
    assert.equal((await all_cancelled(server)).length, 3);
  });

  for (const prefixed of [true, false])
    test(`DELETE ends an answer of three choices, by its id ${prefixed ? "as it is" : "bare"}`, async () => {
      const server = await sim("rate=100,prefill=1000000");
      const stream = await client_of(server).chat.completions.create({ ...endless, n: 3, stream: true });
      const reasons = [];
      let asked = null;
      for await (const { id, choices } of stream) {
        const job = `${server.url}/v1/jobs/${prefixed ? id : id.replace("chatcmpl-", "")}`;
        asked ??= fetch(job, { method: "DELETE" }).then((answer) => answer.json());
        for (const choice of choices) if (choice.finish_reason) reasons.push(choice.finish_reason);
      }
      assert.deepEqual(reasons, ["cancel", "cancel", "cancel"]);
      const { state, finish_reason } = await asked;
      assert.deepEqual([state, finish_reason], ["finished", "cancel"]);
      assert.equal((await jobs_of(server)).length, 3);
    });
});

describe("openai: time-outs", { skip }, () => {
  test("the client's own time-out is its own error, and cancels the job", async () => {
    const server = await sim("rate=20,prefill=1000000");
    await assert.rejects(client_of(server, { timeout: 500 }).chat.completions.create(endless),
      OpenAI.APIConnectionTimeoutError);
    await all_cancelled(server);
  });

  test("a deadline cuts the answer, with what there is until then", async () => {
    const server = await sim("rate=20,prefill=1000000");
    for (const stream of [false, true]) {
      const asked = { ...endless, deadline_ms: 300, stream };
      const answer = await client_of(server).chat.completions.create(asked);
      let reason = stream ? null : answer.choices[0].finish_reason;
      if (stream) for await (const { choices } of answer) reason = choices[0].finish_reason ?? reason;
      assert.equal(reason, "length");
    }
  });
});

describe("openai: errors", { skip }, () => {
  let server;
  before(async () => {
    server = await sim();
  });
  const asked = { model: "sim", messages: [user("hi")], max_tokens: 2 };

  const refusals = [
    ["a value out of its range", { temperature: 9 }, "temperature", /temperature must be in \[0/],
    ["an unknown role", { messages: [{ role: "king", content: "hi" }] }, "messages", /role must be system/],
    ["a part that is no text", { messages: [user([{ type: "image_url", image_url: { url: "x" } }])] },
      "messages", /'image_url' are not supported/],
    ["store", { store: true }, "store", /not supported/],
    ["a tier", { service_tier: "priority" }, "service_tier", /one tier/],
    ["best_of over n", { n: 2, best_of: 3 }, "best_of", /unless it is n/],
    ["two limits", { max_completion_tokens: 3 }, "max_completion_tokens", /set one of them/],
    ["a tool that has to be called", { tool_choice: "required" }, "tool_choice", /there are no tools/],
  ];
  for (const [what, fields, param, says] of refusals)
    test(`BadRequestError, streamed and not: ${what}`, async () => {
      for (const stream of [false, true]) {
        const answer = client_of(server).chat.completions.create({ ...asked, ...fields, stream });
        await assert.rejects(answer, (e) => {
          assert.ok(e instanceof OpenAI.BadRequestError);
          assert.deepEqual([e.code, e.type, e.param], ["invalid_param", "invalid_request_error", param]);
          assert.match(e.message, says);
          assert.match(e.requestID, /^[0-9a-f]+$/);
          return true;
        });
      }
    });

  test("an unknown field is taken, and named in the answer and in a stream's first chunk", async () => {
    const client = client_of(server);
    const whole = await client.chat.completions.create({ ...asked, temprature: 1 });
    assert.deepEqual(whole.warnings.map((w) => w.param), ["temprature"]);
    const named = [];
    for await (const chunk of await client.chat.completions.create({ ...asked, temprature: 1, stream: true }))
      named.push((chunk.warnings ?? []).map((w) => w.param));
    assert.deepEqual(named[0], ["temprature"]);
    assert.ok(named.slice(1).every((names) => names.length === 0));
  });

  const wrong = [["suffix", "x"], ["logit_bias", { x: 1 }], ["best_of", 2], ["prompt", [[1], ["x"]]]];
  for (const [name, value] of wrong)
    test(`BadRequestError of a completion: ${name}`, async () => {
      await assert.rejects(
        client_of(server).completions.create({ model: "sim", prompt: "x", [name]: value }),
        (e) => e instanceof OpenAI.BadRequestError && e.param.startsWith(name));
    });

  test("AuthenticationError without a key, PermissionDeniedError with a browser token", async () => {
    const file = join(folder, "keys");
    writeFileSync(file, "secret\n");
    const locked = await sim(undefined, "--api-key-file", file);
    const ask = (apiKey) => client_of(locked, { apiKey }).chat.completions.create(asked);
    assert.equal((await ask("secret")).choices.length, 1);
    await assert.rejects(ask("wrong"), (e) =>
      e instanceof OpenAI.AuthenticationError && e.status === 401 && e.code === "invalid_api_key");
    const made = await post(locked, "/v1/stream/tokens", {}, { authorization: "Bearer secret" });
    const { token } = await made.json();
    await assert.rejects(ask(token), (e) =>
      e instanceof OpenAI.PermissionDeniedError && e.status === 403 && e.code === "token_forbidden");
  });

  test("NotFoundError: a model, a path, a job", async () => {
    const not_found = (code) => (e) => e instanceof OpenAI.NotFoundError && e.code === code;
    const client = client_of(server);
    await assert.rejects(client.chat.completions.create({ ...asked, model: "other" }),
      not_found("model_not_found"));
    await assert.rejects(client.models.retrieve("other"), not_found("model_not_found"));
    await assert.rejects(client.embeddings.create({ model: "sim", input: "x" }), not_found("not_found"));
    await assert.rejects(client.get("/jobs/chatcmpl-" + "0".repeat(32)), not_found("not_found"));
  });

  test("RateLimitError has Retry-After, and the client that waits for it gets its answer", async () => {
    const full = await sim("rate=100,prefill=1000000", "--max-batch", "1", "--queue", "0");
    const busy = client_of(full).chat.completions.create({ ...asked, max_tokens: 150 });
    await some_job_is(full, "decoding");
    await assert.rejects(client_of(full).chat.completions.create(asked), (e) => {
      assert.ok(e instanceof OpenAI.RateLimitError);
      assert.deepEqual([e.status, e.type, e.code], [429, "rate_limit_error", "overloaded"]);
      assert.match(e.headers.get("retry-after"), /^[1-9]\d*$/);
      return true;
    });
    const patient = await client_of(full, { maxRetries: 10 }).chat.completions.create(asked);
    assert.equal(patient.usage.completion_tokens, 2);
    assert.equal((await busy).usage.completion_tokens, 150);
  });

  test("InternalServerError, and in mid-stream an APIError that has the error's object", async () => {
    const broken = await sim("rate=200,prefill=1000000,fault=sampler@100-1000000");
    const ask = (stream) => client_of(broken).chat.completions.create({ ...endless, stream });
    let pieces = 0;
    await assert.rejects(async () => {
      for await (const chunk of await ask(true)) pieces += chunk.choices[0].delta.content ? 1 : 0;
    }, (e) => {
      assert.ok(e instanceof OpenAI.APIError);
      assert.deepEqual([e.status, e.code, e.type], [undefined, "internal", "server_error"]);
      assert.match(e.message, /logits that are not finite/);
      return true;
    });
    assert.ok(pieces > 0, "text came before");
    await assert.rejects(ask(false), (e) => e instanceof OpenAI.InternalServerError && e.status === 500);
  });

  test("an APIError with the status where the client has no class: 405, 413", async () => {
    const client = client_of(server), with_status = (status) => (e) =>
      e instanceof OpenAI.APIError && e.status === status && e.type === "invalid_request_error";
    await assert.rejects(client.delete("/models/sim"), with_status(405));
    const small = await sim(undefined, "--max-body", "1024");
    await assert.rejects(client_of(small).chat.completions.create({ ...asked, user: "x".repeat(2000) }),
      with_status(413));
  });

  test("APIConnectionError where the server is gone, before the answer and within it", async () => {
    const gone = await sim("rate=50,prefill=1000000");
    const stream = await client_of(gone).chat.completions.create({ ...endless, stream: true });
    await assert.rejects(async () => {
      for await (const chunk of stream) if (chunk.choices[0].delta.content) await gone.stop();
    });
    await assert.rejects(client_of(gone).chat.completions.create(asked), OpenAI.APIConnectionError);
    await until(async () => (await jobs_of(server)).every((job) => job.state === "finished"));
  });
});
