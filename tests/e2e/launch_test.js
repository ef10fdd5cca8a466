// `weir launch`, aliases, scripted answers and `--chat-template`, against a real server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";

import { start_real } from "./real_server.js";

const binary = process.env.WEIR_BIN;

let dir, server;

/** Writes a file into the directory of these tests, and resolves to its path. */
function file(name, text, mode = 0o644) {
  const path = join(dir, name);
  writeFileSync(path, text, { mode });
  return path;
}

/** Runs the binary with fake clients first on PATH. */
function weir(...args) {
  const env = { ...process.env, PATH: dir + delimiter + process.env.PATH, CLAUDE_CODE_USE_BEDROCK: "1" };
  return new Promise((resolve) => {
    execFile(binary, args, { timeout: 60_000, env }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stdout, stderr }));
  });
}

const launch = (client, ...args) => weir("launch", client, "--url", server.url, ...args);

async function ask(path, body, url = server.url) {
  const answer = await fetch(url + path, {
    method: body ? "POST" : "GET",
    headers: { "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}

const question = (text, more = {}) => ({ messages: [{ role: "user", content: text }], ...more });

before(async () => {
  dir = mkdtempSync(join(tmpdir(), "weir-launch-"));
  const script = file("answers.jsonl", '{"when":"<user>weather","say":"Regen, naß ☔"}\n{"say":"?"}\n');
  const template = file("plain.jinja",
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ bos_token }}");
  const fake = '#!/bin/sh\nenv\nfor a in "$@"; do echo "arg=$a"; done\nexit 7\n';
  for (const name of ["claude", "codex", "opencode", "goose"]) file(name, fake, 0o755);
  server = await start_real({
    args: ["--device", `sim:rate=0,script=${script}`, "--chat-template", template,
      "--alias", "claude-x=sim", "--alias", "later=absent"],
  });
});

after(async () => {
  await server?.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe("a scripted sim with a chat template", () => {
  test("says what its script says, whole characters and the end", async () => {
    const { body } = await ask("/v1/chat/completions", question("weather"));
    assert.equal(body.choices[0].message.content, "Regen, naß ☔");
    assert.equal(body.choices[0].finish_reason, "stop");
    const cut = await ask("/v1/chat/completions", question("weather", { max_tokens: 5 }));
    assert.equal(cut.body.choices[0].message.content, "Regen");
    assert.equal(cut.body.choices[0].finish_reason, "length");
    const several = await ask("/v1/completions", { prompt: "weather", n: 3 });
    assert.deepEqual(several.body.choices.map((c) => c.text), ["?", "?", "?"]);
  });

  test("is refused where script or template are wrong", async () => {
    const bad = file("bad.jsonl", '{"say":"a"}\n{"says":"b"}\n');
    const script = await weir("generate", "--device", `sim:script=${bad}`, "--prompt", "x");
    assert.equal(script.code, 2);
    assert.match(script.stderr, /bad\.jsonl, line 2: .*says/);
    const jinja = file("bad.jinja", "a\n{% if %}");
    const template = await weir("generate", "--device", "sim", "--chat-template", jinja, "--prompt", "x");
    assert.equal(template.code, 2);
    assert.match(template.stderr, /bad\.jinja.*line 2/s);
    const both = await weir("generate", "--device", "sim", "--chat-template", jinja, "--chatml", "--prompt",
      "x");
    assert.equal(both.code, 2);
    assert.match(both.stderr, /--chat-template and --chatml/);
  });

  test("an order over the network names no script", async () => {
    const order = { name: "reader", source: "sim:script=/etc/passwd" };
    const { status, body } = await ask("/v1/admin/models", order);
    assert.ok(status >= 400, JSON.stringify(body));
    assert.doesNotMatch(JSON.stringify(body), /line 1/);
  });

  test("the template reaches models that are loaded later", async () => {
    const made = await ask("/v1/admin/models", { name: "second", source: "sim:rate=1000" });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const { body } = await ask("/v1/chat/completions", question("hi", { model: "second", max_tokens: 2 }));
    assert.equal(body.usage.prompt_tokens, "<user>hi".length);
    await ask("/v1/admin/models/second", { action: "unload" });
    await fetch(`${server.url}/v1/admin/models/second`, { method: "DELETE" });
  });
});

describe("aliases", () => {
  test("are found wherever a model is named, and answers name the model", async () => {
    const { body } = await ask("/v1/chat/completions", question("weather", { model: "claude-x" }));
    assert.equal(body.model, "sim");
    for (const [path, more] of [["/v1/completions", { prompt: "a" }], ["/v1/tokenize", { text: "a" }],
      ["/v1/messages", question("weather", { max_tokens: 9 })]]) {
      const { status } = await ask(path, { model: "claude-x", ...more });
      assert.equal(status, 200, path);
    }
    const list = await ask("/v1/models");
    assert.deepEqual(list.body.data.map((m) => [m.id, m.meta?.alias_of]),
      [["sim", undefined], ["claude-x", "sim"]]);
    const one = await ask("/v1/models/claude-x");
    assert.equal(one.body.id, "claude-x");
    assert.equal(one.body.context_length, list.body.data[0].context_length);
    const later = await ask("/v1/completions", { model: "later", prompt: "a" });
    assert.equal(later.status, 404);
    assert.match(JSON.stringify(later.body), /absent/);
    const taken = await ask("/v1/admin/models", { name: "claude-x", source: "sim" });
    assert.equal(taken.status, 400);
  });

  test("of another form are refused at the start", async () => {
    const wrong = [["sim=x", /a model is called 'sim'/], ["x", /NAME=MODEL/], ["=x", /NAME=MODEL/]];
    for (const [given, why] of wrong) {
      const { code, stderr } = await weir("serve", "--device", "sim", "--alias", given);
      assert.equal(code, 2);
      assert.match(stderr, why);
    }
    const chain = await weir("serve", "--device", "sim", "--alias", "a=b", "--alias", "b=sim");
    assert.match(chain.stderr, /'b' is an alias itself/);
  });
});

describe("weir launch", () => {
  test("starts a client with what it needs, and ends as it ends", async () => {
    const { code, stdout, stderr } = await launch("claude", "--", "-p", "say 'hi'");
    assert.equal(code, 7, stderr);
    const lines = stdout.split("\n");
    for (const line of [`ANTHROPIC_BASE_URL=${server.url}`, "ANTHROPIC_AUTH_TOKEN=none", "ANTHROPIC_API_KEY=",
      "ANTHROPIC_MODEL=sim", "ANTHROPIC_DEFAULT_HAIKU_MODEL=sim", "CLAUDE_CODE_ATTRIBUTION_HEADER=0",
      "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "arg=-p", "arg=say 'hi'"])
      assert.ok(lines.includes(line), line);
    assert.doesNotMatch(stdout, /CLAUDE_CODE_USE_BEDROCK/);
  });

  test("tells codex by its arguments, opencode by a configuration", async () => {
    const codex = await weir("launch", "codex", "--url", `${server.url}/v1/`, "--api-key", "k", "--", "exec");
    assert.match(codex.stdout, /^WEIR_API_KEY=k$/m);
    const provider = `model_providers.weir={name="weir",base_url="${server.url}/v1",wire_api="responses",` +
      'env_key="WEIR_API_KEY"}';
    assert.ok(codex.stdout.split("\n").includes(`arg=${provider}`), codex.stdout);
    assert.match(codex.stdout, /^arg=model="sim"\narg=-c\narg=model_context_window=\d+\narg=exec$/m);
    const opencode = await launch("opencode", "--model", "claude-x");
    const written = JSON.parse(/^OPENCODE_CONFIG_CONTENT=(.*)$/m.exec(opencode.stdout)[1]);
    assert.equal(written.model, "weir/claude-x");
    assert.equal(written.provider.weir.options.baseURL, `${server.url}/v1`);
    const { limit } = written.provider.weir.models["claude-x"];
    assert.ok(limit.context > limit.output && limit.output > 0);
    const goose = await launch("goose");
    assert.match(goose.stdout, /^OPENAI_BASE_PATH=v1\/chat\/completions$/m);
    assert.match(goose.stdout, /^arg=session$/m);
  });

  test("prints what it would do", async () => {
    const { code, stdout } = await launch("claude", "--print", "--", "it's");
    assert.equal(code, 0);
    assert.match(stdout, /^unset CLAUDE_CODE_USE_BEDROCK$/m);
    assert.match(stdout, /^export ANTHROPIC_API_KEY=''$/m);
    assert.ok(stdout.endsWith("claude 'it'\\''s'\n"), stdout);
    const plain = await launch("env");
    assert.match(plain.stdout, /^export OPENAI_MODEL=sim$/m);
    assert.doesNotMatch(plain.stdout, /^[^e]/m);
  });

  test("says what is wrong", async () => {
    for (const [args, code, why] of [
      [["nobody", "--url", server.url], 2, /there is claude, codex/],
      [["claude", "--url", server.url, "--model", "gpt"], 2, /'gpt'; there is sim, claude-x/],
      [["qwen", "--url", server.url], 2, /qwen is not installed: npm install/],
      [["env", "--url", server.url, "--", "x"], 2, /takes no arguments/],
      [["claude", "--url", "http://127.0.0.1:1"], 1, /nobody answers/],
    ]) {
      const said = await weir("launch", ...args);
      assert.equal(said.code, code, said.stderr);
      assert.match(said.stderr, why);
    }
  });
});
