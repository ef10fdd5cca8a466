// Times of masks and of compiling, ours and those of xgrammar's npm build, over the same schemas, instances
// and tokens, one after the other: MaskBench's protocol, as bench_masks has it.
//
//   npm install --prefix tests/bench/grammar
//   node tests/bench/grammar/xgrammar.js BUILD/tests/bench/grammar/bench_masks TOKENIZER-DIR FOLDER [EVERY]
//
// xgrammar runs as WebAssembly without threads, which costs it a factor against its native build; the time of
// a mask includes its copy out of the module's memory. The tokenizer has to be one with byte-level pieces.
// EVERY: one in EVERY schemas is taken. A schema that takes longer than `longest` counts as late.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

const longest = 20_000; // ms a schema
const microseconds_since = (began) => Number(process.hrtime.bigint() - began) / 1000;

function pieces_of(dir) {
  const { model, added_tokens } = JSON.parse(readFileSync(join(dir, "tokenizer.json"), "utf8"));
  const pieces = [];
  for (const [piece, id] of Object.entries(model.vocab)) pieces[id] = piece;
  for (const { id, content } of added_tokens) pieces[id] = content;
  return Array.from(pieces, (piece) => piece ?? "");
}

// The package says that it is an ES module and is none, so Node's own import refuses it.
function load_xgrammar() {
  const file = fileURLToPath(new URL("node_modules/@mlc-ai/web-xgrammar/lib/index.js", import.meta.url));
  const module = { exports: {} };
  const names = ["require", "module", "exports", "__filename", "__dirname"];
  const run = new Function(...names, readFileSync(file, "utf8"));
  run(createRequire(file), module, module.exports, file, dirname(file));
  return module.exports;
}

async function serve() {
  const xgrammar = load_xgrammar();
  const pieces = pieces_of(workerData);
  const info = await xgrammar.TokenizerInfo.createTokenizerInfo(
    pieces, "byte_level", false, pieces.length, [pieces.length - 1]);
  const compiler = await xgrammar.GrammarCompiler.createGrammarCompiler(info, false);
  parentPort.on("message", async ({ schema, walks }) => {
    const out = { mask: [], accept: [], rejected: 0 };
    let compiled;
    try {
      const began = process.hrtime.bigint();
      compiled = await compiler.compileJSONSchema(schema, true, undefined, undefined, false);
      const first = await xgrammar.GrammarMatcher.createGrammarMatcher(compiled);
      await first.getNextTokenBitmask();
      out.compile = microseconds_since(began);
      first.dispose();
      for (const ids of walks) out.rejected += (await walk(xgrammar, compiled, ids, out)) ? 0 : 1;
    } catch (e) {
      out.refused = String(e);
    }
    compiled?.dispose();
    parentPort.postMessage(out);
  });
  parentPort.postMessage("ready");
}

async function walk(xgrammar, compiled, ids, out) {
  const matcher = await xgrammar.GrammarMatcher.createGrammarMatcher(compiled);
  try {
    for (const id of ids) {
      const began = process.hrtime.bigint();
      const mask = await matcher.getNextTokenBitmask();
      out.mask.push(microseconds_since(began));
      if (!((mask[id >> 5] >>> (id & 31)) & 1)) return false;
      const before = process.hrtime.bigint();
      matcher.acceptToken(id);
      out.accept.push(microseconds_since(before));
    }
    return true;
  } finally {
    matcher.dispose();
  }
}

class engine {
  #worker;
  #dir;
  constructor(dir) {
    this.#dir = dir;
  }

  async #next() {
    return new Promise((resolve) => {
      const late = setTimeout(() => resolve(undefined), longest);
      const end = (answer) => {
        clearTimeout(late);
        resolve(answer);
      };
      this.#worker.once("message", end);
      this.#worker.once("error", (e) => end({ refused: `it broke: ${e}`, broken: true }));
    });
  }

  /** Undefined: it was late. */
  async ask(line) {
    if (!this.#worker) {
      this.#worker = new Worker(fileURLToPath(import.meta.url), { workerData: this.#dir });
      if ((await this.#next()) !== "ready") throw new Error("xgrammar does not start");
    }
    this.#worker.removeAllListeners("message").removeAllListeners("error");
    this.#worker.postMessage(line);
    const answer = await this.#next();
    if (!answer || answer.broken) await this.stop();
    return answer;
  }

  async stop() {
    await this.#worker?.terminate();
    this.#worker = undefined;
  }
}

function print(name, all) {
  const us = all.sort((a, b) => a - b);
  const at = (q) => us[Math.floor(q * (us.length - 1))];
  const average = us.reduce((a, b) => a + b, 0) / us.length;
  const ranks = { p50: 0.5, p95: 0.95, p99: 0.99, "p99.9": 0.999, max: 1 };
  const figures = [["avg", average], ...Object.entries(ranks).map(([key, q]) => [key, at(q)])];
  const text = figures.map(([key, value]) => `${key} ${value.toFixed(2).padStart(9)}`);
  console.log(`${name.padEnd(28)} n ${String(us.length).padStart(8)}  ${text.join("  ")} us`);
}

async function compare([bench, dir, folder, every = "1"]) {
  const temporary = mkdtempSync(join(tmpdir(), "weir-xgrammar-"));
  const dump = join(temporary, "walks.jsonl");
  console.log("weir");
  spawnSync(bench, [dir, folder, every, dump], { stdio: ["ignore", "inherit", "ignore"] });
  const lines = readFileSync(dump, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  rmSync(temporary, { recursive: true });

  const xgrammar = new engine(dir);
  const all = { compile: [], mask: [], accept: [] };
  let refused = 0, late = 0, rejected = 0;
  for (const line of lines) {
    const answer = await xgrammar.ask(line);
    if (!answer) late += 1;
    else if (answer.refused) refused += 1;
    if (!answer || answer.refused) continue;
    rejected += answer.rejected;
    all.compile.push(answer.compile);
    for (const x of answer.mask) all.mask.push(x);
    for (const x of answer.accept) all.accept.push(x);
  }
  await xgrammar.stop();
  console.log(`xgrammar, ${lines.length} schemas that weir compiles: refused ${refused}, over ` +
    `${longest / 1000} s ${late}; valid instances rejected ${rejected}`);
  print("compile and first mask", all.compile);
  print("mask", all.mask);
  print("accept", all.accept);
}

await (isMainThread ? compare(process.argv.slice(2)) : serve());
