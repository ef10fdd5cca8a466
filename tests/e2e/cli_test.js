// The command line's exit codes, each with a message that names what was wrong.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { start_real } from "./real_server.js";

const binary = process.env.WEIR_BIN;
const folder = mkdtempSync(join(tmpdir(), "weir-cli-"));
after(() => rmSync(folder, { recursive: true }));

function file(name, text) {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

const device = "sim:rate=1000000,prefill=1000000000";
const sim = ["generate", "--device", device, "--prompt", "x", "--max-tokens", "3"];
const plan = ["plan", "--model", "big=random:llama-3.1-8b"];
const rill = ["generate", "--temperature", "0"];
const groups = [["Models", "model"], ["Memory and batching", "kv-tokens"], ["Queue", "queue"],
  ["Network", "listen"], ["Keys", "api-key-file"], ["Limits on clients", "max-jobs"],
  ["Lost connections", "retain-s"],
  ["Responses", "store-s"], ["Logging", "log-level"]];
const kernels = ["bench", "kernels", "--rows", "1", "--context", "8"];
const engine = ["bench", "engine", "--tokens", "2", "--context", "4", "--batch", "2", "--prefill", "8"];

// [what, arguments, exit code, what stderr or (with 0) stdout says, environment]
const rows = [
  ["help", ["--help"], 0, /serve.*generate/s],
  ["version", ["--version"], 0, /\d+\.\d+\.\d+/],
  ["a subcommand's help has units, defaults and ranges", ["serve", "--help"], 0,
    /--max-frame bytes:UINT in \[1024 - 1073741824\]=262144/],
  ["a subcommand's help has groups", ["serve", "--help"], 0,
    new RegExp(groups.map(([group, option]) => `\n${group}:\n.*--${option} `).join(".*"), "s")],
  ["every setting as it is", ["serve", "--print-config", "--queue", "7"], 0,
    /# jobs, 0 to 1048576, default 256\nqueue = 7\n(.*\n)*#api-key-file = /],
  ["a setting of the environment", ["serve", "--print-config"], 0, /\nchatml = true\n/,
    { WEIR_CHATML: "1" }],
  ["a message goes through the model's template", [...rill, "--message", "What is 12 + 30?"], 0, /^42\n$/],
  ["a system message",
    [...rill, "--system", "Answer in capitals.", "--message", "What day comes after Monday?"], 0,
    /^TUESDAY\n$/],
  ["tokens of the bundled model", ["tokenize", "Once"], 0, /^\d+\t/],
  ["a job", sim, 0, /^(w\d{3} ){3}\n$/],
  ["a job's object", [...sim, "--json", "--seed", "7"], 0, /"finish_reason":"length"/],
  ["an empty set of options from a file", [...sim, "--config", file("empty.toml", "")], 0, /^w/],
  ["the device fails", ["generate", "--device", "sim:fault=device@1", "--prompt", "x"], 1, /fault=device@1/],
  ["the benchmarks by name", ["bench", "--list"], 0, /^engine .*\nkernels /],
  ["a benchmark of a model", [...engine, "--repeat", "1", "--kernels", "--json"], 0,
    /"tokens_per_s".*"share_of_read_limit".*"linear \[32000, 768\]".*"prefill"/],
  ["a benchmark of operations", [...kernels, "--ms", "1", "--json"], 0,
    /"attention decode".*"share_of_read_limit"/],
  ["a benchmark without a name", ["bench"], 2, /weir bench NAME/],
  ["a benchmark's shape", ["bench", "engine", "--shape", "huge"], 2, /'huge'/],
  ["a benchmark's device", ["bench", "engine", "--device", "sim"], 2, /--device/],
  ["no subcommand", [], 2, /subcommand/],
  ["an unknown subcommand", ["dance"], 2, /'dance'/],
  ["a plan for a card that is not there", [...plan, "--gpu-memory", "80G"], 0,
    /^device cuda:0 +85\.9G total .*\n  big +16\.1G weights .* \d+ tokens\nfits; .*is big\nassumed: cuda:0/],
  ["a plan of two models", [...plan, "--model", "s=random:llama-3.2-1b", "--gpu-memory", "80G"], 0,
    /load order is s, big\n/],
  ["a plan of copies on two cards", [...plan, "--gpu-memory", "80G,40G", "--replicas", "2"], 0,
    /cuda:1 +42\.9G total .*0\.1G free on cuda:0, 0\.1G free on cuda:1/s],
  ["a plan as JSON", [...plan, "--gpu-memory", "80G", "--reserve-vram", "1G", "--json"], 0,
    /^\{"weir_plan":1,"fits":true,.*"total":85899345920,.*"reserve":1073741824,.*"layers":\[32\]/],
  ["a plan of the bundled model here", ["plan", "--device", "cpu"], 0, /device cpu .*\n  rill .*\nfits; /s],
  ["a plan of a sim", ["plan", "--device", "sim", "--replicas", "2"], 0, /device sim +total unknown\n/],
  ["a plan of the server's file", ["plan", "--config", file("plan.toml",
    'device = "cpu"\nlisten = "127.0.0.1:1"\nkv-tokens = "6400"\n')], 0, /rill .* 6400 tokens/],
  ["a plan with a shorter context",
    [...plan, "--gpu-memory", "80G", "--context", "big=1000", "--context", "64", "--json"], 0,
    /"context":1000[,}]/],
  ["a context of a model that is not there", [...plan, "--gpu-memory", "80G", "--context", "small=10"], 2,
    /--context small=10: no model is called 'small'/],
  ["a context that is no number", ["serve", "--device", "cpu", "--context", "rill=many"], 2,
    /--context rill=many: \[NAME=\]TOKENS is wanted/],
  ["two contexts of all models", ["serve", "--device", "cpu", "--context", "1", "--context", "2"], 2,
    /--context 2: another one is for the same models/],
  ["a report on the bundled model", ["inspect", "--device", "cpu"], 0,
    /served +yes\nfamily +LlamaForCausalLM\n.*\nstops at .*\ncpu +weights .*free: a pool of /s],
  ["a report for a card that is not there", ["inspect", "--device", "cuda:3", "--gpu-memory", "40G"], 0,
    /cuda:3 +weights .*assumed: cuda:3 has the facts of an H100/s],
  ["a report with a shorter context", ["inspect", "--device", "cpu", "--context", "100", "--json"], 0,
    /"context":\{"own":2048,"served":100\}.*"device":"cpu".*"context":100,/],
  ["a report with a type that is none", ["inspect", "--kv-type", "int3"], 2, /--kv-type must be auto/],
  ["a report with memory that is none", ["inspect", "--gpu-memory", "x"], 2, /--gpu-memory must be bytes/],
  ["a plan that does not fit", [...plan, "--gpu-memory", "16G"], 3,
    /does not fit: cuda:0 lacks \d+ bytes \(\d\.\dG\), first for the weights of big/],
  ["a plan whose pages do not fit", [...plan, "--gpu-memory", "20G", "--kv-tokens", "999999"], 3,
    /first for the pages of big/],
  ["a plan with a floor that does not fit", [...plan, "--gpu-memory", "20G", "--kv-floor", "99999"], 3,
    /first for the pages of big/],
  ["a plan of more pages than have numbers",
    [...plan, "--gpu-memory", "80G", "--kv-tokens", "99999999999999"], 3,
    /--kv-tokens 99999999999999 takes/],
  ["a plan of a file that is none", ["plan", "--device", "cpu", "--model", "/nowhere"], 2,
    /--model \/nowhere/],
  ["a plan with memory that is no number", [...plan, "--gpu-memory", "80Q"], 2,
    /--gpu-memory must be bytes, or a number and K, M or G, not '80Q'/],
  ["a plan with other memory for the host", [...plan, "--gpu-memory", "80G", "--device", "cpu"], 2,
    /--gpu-memory: cpu has the memory of this machine/],
  ["a plan with more memories than devices", [...plan, "--gpu-memory", "80G,80G", "--device", "cuda:3"], 2,
    /--gpu-memory has 2 numbers, and --device names 1/],
  ["a plan with more reserves than devices", [...plan, "--gpu-memory", "80G", "--reserve-vram", "1G,2G"], 2,
    /--reserve-vram has 2 numbers, and there are 1 devices/],
  ["a plan with no memory", [...plan, "--gpu-memory", "0"], 2, /--gpu-memory must be bytes above 0/],
  ["a server whose models do not fit",
    ["serve", "--device", "cpu", "--listen", "127.0.0.1:0", "--kv-tokens", "9999999999"], 3,
    /plan: does not fit: cpu lacks \d+ bytes .*first for the pages of rill/],
  ["a form of the log", ["serve", "--log-format", "xml"], 2, /--log-format/],
  ["an origin that no browser sends",
    ["serve", "--device", "sim", "--allow-origin", "https://a.example", "--allow-origin", "*"], 2,
    /--allow-origin \*: a \* stands for nothing here/],
  ["an unknown option", ["serve", "--dance"], 2, /--dance/],
  ["a value out of its range", ["serve", "--max-frame", "3"], 2, /--max-frame/],
  ["a value out of its range in the environment", ["serve"], 2, /--max-frame/, { WEIR_MAX_FRAME: "3" }],
  ["a value of another kind", ["serve", "--threads", "many"], 2, /--threads/],
  ["a value that is missing", ["serve", "--listen"], 2, /--listen/],
  ["an option that is not there yet", ["generate", "--share"], 2, /--share.*not supported yet/],
  ["an address for metrics",
    ["serve", "--device", "sim", "--listen", "127.0.0.1:0", "--metrics-listen", ":3"], 2,
    /--metrics-listen :3: has to be HOST:PORT/],
  ["a device that is not there", ["serve", "--device", "abacus"], 2, /--device/],
  ["a device of a list", ["serve", "--device", "cpu,abacus"], 2, /'abacus'/],
  ["a device that stands alone", ["serve", "--device", "cpu,auto"], 2, /'auto' stands alone/],
  ["a device twice", ["serve", "--device", "cuda:1,cuda:1"], 2, /cuda:1 is there twice/],
  ["more copies than devices", ["serve", "--device", "cpu", "--replicas", "2"], 2,
    /--replicas 2: --device names 1 device/],
  ["a key of the simulated device", ["serve", "--device", "sim:rat=3"], 2, /no key «rat»/],
  ["half an objective", ["serve", "--device", "sim", "--slo", "ttft=1000"], 2, /--slo: tpot is missing/],
  ["an objective of other times", ["serve", "--device", "sim", "--slo", "itl=5"], 2,
    /'itl' is not ttft or tpot/],
  ["an address", ["serve", "--device", "sim", "--listen", "nowhere"], 2, /--listen nowhere/],
  ["a model's directory", ["serve", "--model", "/nowhere"], 2, /--model \/nowhere/],
  ["two models of one name", ["serve", "--model", "a=/x", "--model", "a=/y"], 2, /'a'/],
  ["a file of keys", ["serve", "--device", "sim", "--api-key-file", "/nowhere"], 2, /\/nowhere/],
  ["a key twice", ["serve", "--device", "sim", "--api-key-file", file("keys", "# ours\na\n b\na \n")], 2,
    /keys: lines 2 and 4 are the same key/],
  ["a fault in a file of keys",
    ["serve", "--device", "sim", "--api-key-file", file("faulty", "a jobs=2\n\nb jobs=many\n")], 2,
    /faulty: line 3: jobs has to be a number from 1 to 65536/],
  ["a file of a secret", ["serve", "--device", "sim", "--token-secret-file", "/nowhere"], 2, /\/nowhere/],
  ["a short secret",
    ["serve", "--device", "sim", "--token-secret-file", file("secret", "x".repeat(31) + "\n")], 2,
    /--token-secret-file .*secret: a secret has 32 bytes or more/],
  ["a configuration file", [...sim, "--config", "/nowhere"], 2, /--config \/nowhere/],
  ["a configuration file's key", [...sim, "--config", file("odd.toml", "dance = 1\n")], 2, /'dance'/],
  ["a configuration file's value", [...sim, "--config", file("bad.toml", "max-batch = 0\n")], 2, /max-batch/],
  ["a sampling parameter", [...sim, "--temperature", "9"], 2, /temperature/],
  ["two prompts", [...sim, "--prompt-ids", "1"], 2, /--prompt-ids/],
  ["two kinds of prompt", [...sim, "--message", "x"], 2,
    /--prompt, --prompt-file, --prompt-ids, --message and --batch: give only one/],
  ["a prompt beside a batch", [...sim, "--batch", "/nowhere"], 2, /--message and --batch: give only one/],
  ["a system message alone", [...sim, "--system", "x"], 2, /--system goes with --message/],
  ["an option for the command line alone",
    [...sim, "--config", file("other.toml", 'config = "x"\n')], 2, /'config' is no option/],
  ["a bound that is no option in the configuration",
    [...sim, "--config", file("bound.toml", "json-values = 5\n")], 2, /'json-values' is no option/],
  ["a token id", ["generate", "--device", "sim", "--prompt-ids", "99999"], 2, /99999/],
  ["a batch file", ["generate", "--device", "sim", "--batch", "/nowhere"], 2, /--batch \/nowhere/],
  ["a type for keys and values that there are none of", [...sim, "--kv-type", "q8"], 2,
    /--kv-type: sim has no keys and values/],
  ["a type of keys and values that is none", ["generate", "--prompt", "x", "--kv-type", "int3"], 2,
    /--kv-type must be auto, f32, bf16, fp8 or q8, not 'int3'/],
  ["activations that the device does not have", [...sim, "--activations", "int8"], 2,
    /--activations int8: only --device cpu has them/],
  ["activations that are none", ["generate", "--prompt", "x", "--activations", "int4"], 2,
    /--activations must be f32 or int8, not 'int4'/],
  ["host memory for pages that have no bytes", [...sim, "--kv-host-mb", "16"], 2,
    /--kv-host-mb: sim has no keys and values/],
  ["more memory than there is", ["generate", "--prompt", "x", "--kv-tokens", "99999999999999"], 3,
    /--kv-tokens 99999999999999 takes/],
];

function run(args, env) {
  return new Promise((resolve) => {
    execFile(binary, args, { env: { ...process.env, ...env }, timeout: 60000 }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

describe("exit codes", { skip: binary ? false : "WEIR_BIN is not set" }, () => {
  for (const [what, args, code, says, env] of rows) {
    test(`${code}: ${what}`, async () => {
      const got = await run(args, env);
      assert.equal(got.code, code, got.stderr);
      assert.match(code === 0 ? got.stdout : got.stderr, says);
    });
  }

  test("130: a job interrupted", async () => {
    const child = spawn(binary, ["generate", "--device", "sim", "--prompt", "x", "--max-tokens", "100000"]);
    child.stdout.once("data", () => child.kill("SIGINT"));
    const code = await new Promise((resolve) => child.once("close", resolve));
    assert.equal(code, 130);
  });

  test("1: a report on a model that cannot be served says why", async () => {
    const nowhere = await run(["inspect", "/nowhere"]);
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.stdout, /^model +\/nowhere\nserved +no\nrefused +\/nowhere/);
    const json = await run(["inspect", "/nowhere", "--json"]);
    assert.equal(json.code, 1);
    assert.equal(JSON.parse(json.stdout).served, false);
  });

  test("a shorter context bounds prompts, and clients are told", async () => {
    const server = await start_real({ args: ["--device", "cpu", "--context", "rill=64"] });
    try {
      const ask = async (path, body) => {
        const answer = await fetch(server.url + path, body && {
          method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
        return { status: answer.status, body: await answer.json() };
      };
      assert.equal((await ask("/v1/models")).body.data[0].context_length, 64);
      assert.equal((await ask("/props")).body.n_ctx, 64);
      const prompt = "one ".repeat(60);
      const long = await ask("/v1/completions", { prompt: prompt + prompt, max_tokens: 1 });
      assert.equal(long.status, 400);
      assert.equal(long.body.error.code, "context_length_exceeded");
      const fits = await ask("/v1/completions", { prompt: "one two", max_tokens: 4 });
      assert.equal(fits.status, 200);
    } finally {
      await server.stop();
    }
  });

  test("2: one bad line of a batch, and the others are answered", async () => {
    const lines = file("lines.jsonl", '{"text":"a"}\n{"txt":"b"}\n{"text":"c"}\n');
    const model = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "../../models/rill");
    const got = await run(["tokenize", "--model", model, "--batch", lines]);
    assert.equal(got.code, 2);
    const answers = got.stdout.trim().split("\n").map((l) => JSON.parse(l));
    assert.deepEqual(answers.map((a) => "error" in a), [false, true, false]);
    assert.match(got.stderr, /line 2/);
  });

  test("a batch's prompts by each name, and its errors by the same", async () => {
    const said = [{ role: "user", content: "x" }];
    const good = [{ input: "x" }, { prompt: "x" }, { prompt: [1, 2] }, { input: said }, { messages: said }];
    const bad = [
      [{ prompt: "x", messages: said }, "messages", /: prompt and messages: a line has only one/],
      [{ input: "x", prompt: "x" }, "prompt", /: input and prompt: a line has only one/],
      [{ messages: "x" }, "messages", /: messages must be an array/],
      [{ messages: [{ role: "user" }] }, "messages", /: messages\[0\] must have a 'content'/],
      [{ prompt: said }, "prompt", /: prompt/],
      [{ prompt: 5 }, "prompt", /: prompt must be a string or token ids, not/],
      [{ prompt: [99999] }, "prompt", /^prompt: token id 99999/],
      [{ input: 5 }, "input", /: input must be/],
      [{ temperature: 0 }, "input", /: input, prompt or messages is missing/],
    ];
    const all = [...good, ...bad.map(([line]) => line)];
    const lines = all.map((line, id) => JSON.stringify({ id, max_tokens: 2, ...line }));
    const got = await run(["generate", "--device", device, "--batch", file("names.jsonl", lines.join("\n"))]);
    assert.equal(got.code, 2, got.stderr);
    const answers = got.stdout.trim().split("\n").map((l) => JSON.parse(l));
    assert.deepEqual(answers.map((a) => a.id), all.map((_, id) => id));
    const inputs = answers.slice(0, good.length).map((a) => a.usage.input_tokens);
    assert.equal(inputs[0], inputs[1]);
    assert.equal(inputs[2], 2);
    assert.equal(inputs[3], inputs[4]);
    assert.ok(inputs[4] > inputs[0], "messages go through a template");
    bad.forEach(([, param, says], i) => {
      const { error } = answers[good.length + i];
      assert.equal(error.param, param);
      assert.match(error.message, says);
    });
  });

  test("a batch names unknown fields, and gives the logprobs that a line asks for", async () => {
    const lines = [{ prompt: "x", temprature: 1, logprobs: 2 }, { prompt: "x" }]
      .map((line) => JSON.stringify({ max_tokens: 3, seed: 1, ...line }));
    const got = await run(["generate", "--device", device, "--batch", file("asked.jsonl", lines.join("\n"))]);
    assert.equal(got.code, 0, got.stderr);
    const [asked, plain] = got.stdout.trim().split("\n").map((l) => JSON.parse(l));
    assert.deepEqual(asked.ignored, ["temprature"]);
    assert.deepEqual(asked.logprobs.map((l) => l.id), asked.token_ids);
    assert.ok(asked.logprobs.every((l) => l.top.length === 2 && l.logprob <= 0));
    assert.ok(!("ignored" in plain) && !("logprobs" in plain));
  });

  test("2: a path that is no model's says what to give", async () => {
    const weights = file("model.safetensors", "x");
    for (const [path, says] of [[weights, /is one file of a model: give its directory/],
      ["no-such-owner/a-model", /hf download no-such-owner\/a-model --local-dir a-model/]]) {
      const got = await run(["generate", "--model", path, "--device", "cpu", "--prompt", "x"]);
      assert.equal(got.code, 2);
      assert.match(got.stderr, says);
    }
  });

  test("a short load says nothing where stderr is no terminal", async () => {
    const ours = Object.keys(process.env).filter((name) => name.startsWith("WEIR_"));  // weir warns of these
    const unset = Object.fromEntries(ours.map((name) => [name, undefined]));
    for (const args of [["generate", "--prompt", "Once", "--max-tokens", "2"], ["tokenize", "Once"]]) {
      let got;
      // A machine with other work may need more than the second after which loading is shown.
      for (let tries = 0; tries < 5 && got?.stderr !== ""; ++tries) got = await run(args, unset);
      assert.equal(got.code, 0);
      assert.equal(got.stderr, "");
    }
  });

  test("no subcommand of the help is missing", async () => {
    const { stdout } = await run(["--help"]);
    assert.doesNotMatch(stdout, /not supported yet/);
    assert.match(stdout, /\n  plan +whether models fit/);
  });

  test("numbers of a batch's answers have sane digits", async () => {
    const lines = file("digits.jsonl", '{"input":"x","max_tokens":20}\n');
    const { stdout } = await run(["generate", "--device", device, "--batch", lines]);
    assert.match(stdout, /"queue_ms":\d+(\.\d{1,3})?[,}]/);
    assert.doesNotMatch(stdout, /\d[eE][+-]?\d/);
  });

  test("a command of one answer takes memory for one, not for a server's sixty-four", async () => {
    const chat = spawn(binary, ["chat", "--device", "cpu"]);
    chat.stdin.write("What is 12 + 30?\n");
    await new Promise((resolve) => chat.stdout.once("data", resolve));
    const status = readFileSync(`/proc/${chat.pid}/status`, "utf8");
    chat.stdin.end();
    await new Promise((resolve) => chat.once("close", resolve));
    const most = Number(/VmHWM:\s+(\d+) kB/.exec(status)[1]);
    assert.ok(most < 400_000, `${most} kB`);
  });

  for (const form of ["text", "json"])
    test(`a line of the log for each request, and none for health and metrics, as ${form}`, async () => {
      const keys = file("log-keys", "a-key-for-alice name=alice admin\n");
      const server = await start_real({
        args: ["--device", "sim", "--api-key-file", keys, "--log-format", form],
      });
      const headers = { authorization: "Bearer a-key-for-alice", "content-type": "application/json" };
      const ask = (path, body) => fetch(server.url + path, { method: body ? "POST" : "GET", headers, body });
      for (const path of ["/health", "/health/ready", "/metrics", "/v1/stats"])
        await (await ask(path)).text();
      await fetch(`${server.url}/v1/completions`, { method: "POST" });
      const answer = await ask("/v1/completions", '{"prompt":"a secret plan","max_tokens":7}');
      const { id } = await answer.json();
      const escaping = await ask("/v1/completions", '{"prompt":"x","model":"\\u001b[2J\\nfake line"}');
      assert.equal(escaping.status, 404);
      await escaping.text();
      server.signal("SIGTERM"); // it writes what waits, and ends
      await server.ended;
      const lines = server.log().trim().split("\n");
      const of_requests = lines.filter((line) => /"event":"request"|info request /.test(line));
      assert.equal(of_requests.length, 2, server.log());
      assert.ok(!/secret plan|fake line|a-key-for/.test(server.log()));
      assert.ok(!server.log().includes("\x1b[2J"));
      if (form === "text") {
        assert.match(of_requests[0], new RegExp(
          `info request id=${id.slice(5)} request_id=[0-9a-f]{32} key=alice route=/v1/completions ` +
          "model=sim in=\\d+ out=7 cached=0 queue=\\S+ first=\\S+ total=\\S+ reason=length$"));
        assert.match(of_requests[1], / reason=refused code=model_not_found$/);
        return;
      }
      const all = lines.map((line) => JSON.parse(line)); // every line, from the first on
      assert.ok(all.every(({ time, level }) => time && level));
      const [done, refused] = all.filter(({ event }) => event === "request");
      assert.equal(done.id, id.slice(5));
      assert.equal(done.key, "alice");
      assert.equal(done.output_tokens, 7);
      assert.equal(refused.code, "model_not_found");
      assert.equal(refused.model, undefined);
    });

  test("--log-level warn leaves out the lines of requests", async () => {
    const server = await start_real({ args: ["--device", "sim", "--log-level", "warn"] });
    const body = '{"prompt":"x","max_tokens":1}';
    const headers = { "content-type": "application/json" };
    await (await fetch(`${server.url}/v1/completions`, { method: "POST", headers, body })).text();
    server.signal("SIGTERM");
    await server.ended;
    assert.doesNotMatch(server.log(), / request /);
  });

  test("a printed configuration starts the same server", async () => {
    const given = ["--device", "sim:rate=1000,prefill=20000", "--max-memory", "3G", "--chatml",
      "--trusted-proxy", "10.0.0.1", "--model", "a=/x", "--model", '/a folder, with "quotes"',
      "--max-frame", "0x800", "--queue-wait-s", "7", "--slo", "ttft=1s,tpot=50"];
    const many = await run(["serve", "--print-config", ...given]);
    const file_of_many = file("many.toml", many.stdout);
    assert.equal((await run(["serve", "--config", file_of_many, "--print-config"])).stdout, many.stdout);
    const printed = await run(["serve", "--print-config", "--device", "sim"]);
    assert.equal(printed.code, 0);
    const config = file("printed.toml", printed.stdout);
    assert.equal((await run(["serve", "--config", config, "--print-config"])).stdout, printed.stdout);
    const server = await start_real({ args: ["--config", config] });
    assert.equal((await fetch(`${server.url}/health/ready`)).status, 200);
    await server.stop();
  });

  test("a warning where anyone who can reach the address may use the server", async () => {
    const log_of = async (host, ...args) => {
      const server = await start_real({ host, args: ["--device", "sim", ...args] });
      await server.stop();
      return server.log();
    };
    const warning = /warning --listen 0\.0\.0\.0:0 without --api-key-file: anyone who can reach/;
    assert.match(await log_of("0.0.0.0"), warning);
    assert.doesNotMatch(await log_of("0.0.0.0", "--api-key-file", file("open-keys", "k")), /--listen/);
    assert.doesNotMatch(await log_of("127.0.0.1"), /--listen/);
  });

  test("no key and no browser token is in a log", async () => {
    const key = "the-key-that-is-in-no-log";
    const keys = file("one-key", key);
    const args = ["--device", "sim", "--log-level", "trace", "--api-key-file", keys];
    const server = await start_real({ args });
    const ask = (bearer, path, body) => fetch(server.url + path, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
      body,
    });
    try {
      const { token } = await (await ask(key, "/v1/stream/tokens", "{}")).json();
      const secret = token.slice(-40);
      for (const bearer of [key, token, `${token}A`]) {
        for (const path of ["/v1/stats", "/v1/jobs"]) await (await ask(bearer, path)).text();
        const refused = await (await ask(bearer, "/v1/stream/tokens", '{"ttl_s":0}')).text();
        assert.ok(!refused.includes(secret) && !refused.includes(key));
        const headers = {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
          "sec-websocket-protocol": `weir.v1, bearer.${Buffer.from(bearer).toString("base64url")}`,
        };
        const chosen = await new Promise((resolve, reject) => {
          get(`${server.url}/v1/stream`, { headers })
            .on("upgrade", (r, socket) => {
              socket.destroy();
              resolve(r.headers["sec-websocket-protocol"]);
            })
            .on("error", reject);
        });
        assert.equal(chosen, "weir.v1");
      }
      assert.ok(!server.log().includes(secret) && !server.log().includes(key));
    } finally {
      await server.stop();
    }
  });
});
