// `weir chat`: conversations with a model here, and with servers over weir.v1 and OpenAI's protocol.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { start_real } from "./real_server.js";

const folder = mkdtempSync(join(tmpdir(), "weir-chat-"));
after(() => rmSync(folder, { recursive: true }));
const file = (name) => join(folder, name);

// Runs `weir chat` with `lines` on standard input. `during(child, output)`: called after each piece of
// output.
function chat(args, lines, during = () => {}) {
  return new Promise((done) => {
    const child = spawn(process.env.WEIR_BIN, ["chat", ...args]);
    let stdout = "", stderr = "";
    child.stdout.on("data", (d) => during(child, (stdout += d)));
    child.stderr.on("data", (d) => (stderr += d));
    child.once("close", (code) => done({ code, stdout, stderr }));
    child.stdin.on("error", () => {});
    child.stdin.end(lines.map((l) => l + "\n").join(""));
  });
}

const page = 64; // tokens; whole pages are cached
const greedy = ["--temperature", "0"];
const sums = Array.from({ length: 30 }, (_, i) => i);
const thirty_turns = sums.flatMap((i) => [`What is ${i} + 5?`, "/stats"]);

// The answers of thirty_turns, and that more and more of what is read is cached.
function check_thirty_turns({ code, stdout, stderr }) {
  assert.equal(code, 0, stderr);
  assert.deepEqual(stdout.trimEnd().split("\n"), sums.map((i) => String(i + 5)));
  const read = [...stderr.matchAll(/the last one: (\d+) read, (\d+) of them cached/g)];
  assert.equal(read.length, 30, stderr);
  for (let i = 1; i < 30; i++) {
    assert.ok(Number(read[i][2]) >= Number(read[i - 1][2]), `turn ${i}: ${read[i][0]}`);
    assert.ok(Number(read[i][2]) > Number(read[i - 1][1]) - page, `turn ${i}: ${read[i][0]}`);
  }
  assert.ok(Number(read[29][2]) > 400, read[29][0]);
}

describe("with a model here", () => {
  test("thirty turns, and what was computed is cached turn after turn", async () => {
    check_thirty_turns(await chat(greedy, thirty_turns));
  });

  test("the model knows what was said, forgets at /reset, and after each turn with --amnesia", async () => {
    const lines = ["My name is Zoë.", "What is my name?"];
    const known = await chat(greedy, lines);
    assert.match(known.stdout, /Your name is Zoë\.\n$/);
    const reset = await chat(greedy, [lines[0], "/reset", lines[1]]);
    assert.doesNotMatch(reset.stdout.split("\n")[1], /Zoë/);
    assert.match(reset.stderr, /is forgotten/);
    const amnesia = await chat([...greedy, "--amnesia"], lines);
    assert.doesNotMatch(amnesia.stdout.split("\n")[1], /Zoë/);
  });

  test("a system message stays, also after /reset", async () => {
    const { stdout } = await chat([...greedy, "--system", "Answer in capitals."],
      ["/reset", "What day comes after Monday?"]);
    assert.equal(stdout, "TUESDAY\n");
  });

  test("a conversation that was saved goes on", async () => {
    await chat(greedy, ["My name is Zoë.", `/save ${file("said.json")}`]);
    assert.equal(JSON.parse(readFileSync(file("said.json")))[0].content, "My name is Zoë.");
    const { stdout } = await chat(greedy, [`/load ${file("said.json")}`, "What is my name?"]);
    assert.match(stdout, /^Your name is Zoë\.\n$/);
  });

  test("what is wrong is said, and the conversation goes on", async () => {
    writeFileSync(file("no.json"), "{}");
    const { code, stdout, stderr } = await chat(greedy,
      ["/dance", "/load", "/load /nonexistent", `/load ${file("no.json")}`, "/save /nonexistent/x",
        "What is 12 + 30?", "/quit", "What is 1 + 1?"]);
    assert.equal(code, 0);
    assert.equal(stdout, "42\n");
    for (const says of [/\/dance is no command/, /\/load needs the name/, /nonexistent: cannot be read/,
      /no list of messages/, /cannot be written/]) assert.match(stderr, says);
  });

  test("the oldest turns are dropped when the context is full, and it is said", async () => {
    const { stdout, stderr } = await chat(["--device", "sim:rate=100000,ctx=300", "--max-tokens", "5"],
      Array.from({ length: 12 }, (_, i) => `question number ${i}`));
    assert.equal(stdout.trimEnd().split("\n").length, 12);
    assert.equal(stderr.match(/\(cut:/g).length, 12, "--max-tokens cuts each answer");
    assert.match(stderr, /the context is full: the \d+ oldest turns? (is|are) forgotten/);
    const long = await chat(["--device", "sim:ctx=300"], ["x".repeat(400), "short"]);
    assert.match(long.stderr, /prompt is too long: \d+ tokens/);
    assert.equal(long.stdout.trimEnd().split("\n").length, 1, "the short question is answered");
  });

  test("lines that belong together are one message", async () => {
    const lines = ['"""', "What is", "12 + 30?", '"""', `/save ${file("lines.json")}`];
    const { stdout } = await chat(greedy, lines);
    assert.ok(stdout.length > 0);
    assert.equal(JSON.parse(readFileSync(file("lines.json")))[0].content, "What is\n12 + 30?");
  });

  test("Ctrl-C ends the answer, not the program", async () => {
    let sent = false;
    const { code, stdout, stderr } = await chat(["--device", "sim:rate=20", "--max-tokens", "1000"],
      ["first", `/save ${file("stopped.json")}`], (child, text) => {
        if (sent || text.length < 20) return;
        sent = true;
        child.kill("SIGINT");
      });
    assert.equal(code, 0);
    assert.match(stderr, /\(stopped\)/);
    const said = JSON.parse(readFileSync(file("stopped.json")));
    assert.equal(said[1].content.trimEnd(), stdout.trimEnd(), "what came stays");
  });
});

describe("with a weir server", () => {
  let server;
  before(async () => (server = await start_real({ args: [] })));
  after(() => server?.stop());

  test("thirty turns over weir.v1", async () => {
    const got = await chat([...greedy, "--url", server.url], thirty_turns);
    check_thirty_turns(got);
    assert.match(got.stderr, /rill over weir\.v1/);
  });

  test("the same over OpenAI's protocol", async () => {
    const got = await chat([...greedy, "--url", `${server.url}/v1/chat/completions`], thirty_turns);
    check_thirty_turns(got);
    assert.match(got.stderr, /OpenAI's protocol/);
  });

  test("a question that the server refuses is not kept", async () => {
    for (const path of ["", "/v1/chat/completions"]) {
      const { stdout, stderr } = await chat([...greedy, "--url", server.url + path],
        ["a ".repeat(5000), "What is 12 + 30?"]);
      assert.match(stderr, /prompt is too long: \d+ tokens/);
      assert.equal(stdout, "42\n");
    }
  });

  test("Ctrl-C cancels the answer at the server", async () => {
    const slow = await start_real({ args: ["--device", "sim:rate=20"] });
    let sent = false;
    const { code, stderr } = await chat(["--url", slow.url, "--max-tokens", "1000"], ["first"],
      (child, text) => {
        if (sent || text.length < 20) return;
        sent = true;
        child.kill("SIGINT");
      });
    const jobs = await (await fetch(`${slow.url}/v1/jobs`)).json();
    await slow.stop();
    assert.equal(code, 0);
    assert.match(stderr, /\(stopped\)/);
    assert.match(JSON.stringify(jobs), /"finish_reason":"cancel"/);
  });
});

test("a model's thoughts are told from its answer, here and at a server", async () => {
  const script = file("thinks.jsonl");
  const lines = [
    { when: "How are thoughts marked?", say: "<think>\nA mark.\n</think>\n\nWith a word." },
    { say: "no tag </think> here" },
  ];
  writeFileSync(script, lines.map((line) => JSON.stringify(line)).join("\n"));
  const template = new URL("qwen_like.jinja", import.meta.url).pathname;
  const model = ["--device", `sim:rate=0,script=${script}`, "--chat-template", template];
  const server = await start_real({ args: model });
  const urls = [server.url, `${server.url}/v1/chat/completions`];
  for (const [i, args] of [model, ...urls.map((url) => ["--url", url])].entries()) {
    const { stdout, stderr } = await chat(args, ["How are thoughts marked?", `/save ${file(`${i}.json`)}`]);
    assert.equal(stdout, "A mark.With a word.\n", stderr);
    const [, said] = JSON.parse(readFileSync(file(`${i}.json`)));
    assert.equal(said.reasoning_content, "A mark.");
    assert.equal(said.content, "With a word.");
  }
  for (const args of [model, ["--url", server.url]])
    assert.equal((await chat(args, ["A tag?"])).stdout, "no tag </think> here\n");
  await server.stop();
});

test("the thoughts of a server of OpenAI's protocol are kept apart, and not sent back", async () => {
  const bodies = [];
  const server = createServer(async (request, answer) => {
    if (request.url === "/v1/models") return answer.end('{"data":[{"id":"thinker"}]}');
    if (request.url !== "/v1/chat/completions") return answer.writeHead(404).end();
    let body = "";
    for await (const piece of request) body += piece;
    bodies.push(JSON.parse(body));
    answer.writeHead(200, { "content-type": "text/event-stream" });
    const event = (delta) => answer.write(`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`);
    event({ reasoning_content: "hm " });
    event({ content: "<thi" });
    event({ content: "nk>more</think>\n\nYes" });
    event({ content: "." });
    answer.end('data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\ndata: [DONE]\n\n');
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const url = `http://127.0.0.1:${server.address().port}/v1`;
  const { stdout, stderr } = await chat(["--url", url, "--api-key", "k"],
    ["a", "b", "/stats", `/save ${file("thoughts.json")}`]);
  server.close();
  assert.equal(stdout, "hm moreYes.\n".repeat(2));
  assert.match(stderr, /the last one: 7 read, 0 of them cached, 3 written/);
  assert.equal(bodies[1].model, "thinker");
  assert.deepEqual(bodies[1].messages, [{ role: "user", content: "a" },
    { role: "assistant", content: "Yes." }, { role: "user", content: "b" }]);
  const said = JSON.parse(readFileSync(file("thoughts.json")));
  assert.equal(said[1].reasoning_content, "hm more");
});

for (const [what, args, says] of [
  ["a URL that is none", ["--url", "nowhere"], /--url nowhere/],
  ["a server that is not there", ["--url", "http://127.0.0.1:1"], /nobody answers there/],
  ["a model that is not there", ["--model", "/nonexistent"], /nonexistent/]])
  test(`exit code 2: ${what}`, async () => {
    const { code, stderr } = await chat(args, ["x"]);
    assert.equal(code, 2);
    assert.match(stderr, says);
  });
