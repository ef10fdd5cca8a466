// weir.js as an npm package: packed, unpacked into an empty project, imported there; and its types by name.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { client_of, fake, say, weir } from "./client_kit.js";

const folder = fileURLToPath(new URL("../../net/page/", import.meta.url));
const types = readFileSync(join(folder, "weir.d.ts"), "utf8");
const module_text = readFileSync(join(folder, "weir.js"), "utf8");

/** Runs a module in the project and returns what it prints. */
const node = (project, code) =>
  execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: project, encoding: "utf8" });

test("the package installs into an empty project, with its types and nothing else", (t) => {
  const project = mkdtempSync(join(tmpdir(), "weir-package-"));
  t.after(() => rmSync(project, { recursive: true }));
  const packed = execFileSync("npm", ["pack", folder, "--pack-destination", project, "--json", "--offline"], {
    cwd: project,
    encoding: "utf8",
  });
  const [{ filename, files }] = JSON.parse(packed);
  assert.deepEqual(files.map(({ path }) => path).sort(), ["package.json", "weir.d.ts", "weir.js"]);
  const place = join(project, "node_modules", "weir.js");
  mkdirSync(place, { recursive: true });
  execFileSync("tar", ["-xf", join(project, filename), "-C", place, "--strip-components=1"]);
  writeFileSync(join(project, "package.json"), "{}");
  const list_names = 'import * as weir from "weir.js"; console.log(Object.keys(weir).sort().join())';
  const names = node(project, list_names);
  assert.deepEqual(names.trim().split(","), Object.keys(weir).sort());
  const said = node(
    project,
    `delete globalThis.WebSocket;
     import { connect } from "weir.js";
     try { connect("http://localhost"); } catch (error) { console.log(error.name + ": " + error.message); }`,
  );
  assert.match(said, /^TypeError: This environment has no WebSocket.* npm install ws.*WebSocket/);
  const { types: path } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  assert.equal(readFileSync(join(place, path), "utf8"), types);
});

/** The names of a class's or interface's members in the types, what is private left out. */
function typed_members(name) {
  const [, body] = new RegExp(`(?:class|interface) ${name}\\b[^\\n]*\\{\\n([^]*?)\\n\\}`).exec(types);
  const bare = body.replace(/\/\*\*[^]*?\*\/ ?/g, "");
  const found = [...bare.matchAll(/^  (?:get )?(\[Symbol\.asyncIterator\]|\w+)\??(?=[:(<])/gm)];
  return found.map(([, member]) => member).filter((member) => member !== "constructor");
}

test("the types name what the module exports", () => {
  const typed = [...types.matchAll(/^export (?:class|function|const) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(typed.sort(), Object.keys(weir).sort());
});

test("the types of classes name what their objects have", async () => {
  const client = client_of(await fake({ plan: say({ delta: "x" }) }));
  const stream = client.create({ input: "" });
  await stream.done;
  const clock = { now: () => 0, wait: () => () => {} };
  const objects = { Client: client, Stream: stream, Playout: new weir.Playout(() => {}, clock) };
  for (const [name, object] of Object.entries(objects)) {
    const is_internal = (member) => new RegExp(`@internal[^]{0,120}?\\*/\\s+${member}\\(`).test(source);
    const [source] = new RegExp(`^export class ${name} [^]*?^\\}$`, "m").exec(module_text);
    const own = Object.keys(object);
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(object));
    if (Symbol.asyncIterator in object) methods.push("[Symbol.asyncIterator]");
    if ("on" in object) methods.push("on");
    const there = [...own, ...methods].filter((member) => member !== "constructor" && !is_internal(member));
    assert.deepEqual(typed_members(name).sort(), [...new Set(there)].sort(), name);
  }
  const said = new weir.WeirError({ code: "c", message: "m", param: "p", retry_after_ms: 1 });
  for (const member of typed_members("WeirError")) assert.ok(member in said, member);
});

test("the types of results and deltas name what the wire brings", async () => {
  const logprobs = [{ id: 1, token: "x", logprob: -1, bytes: [120], top: [] }];
  const client = client_of(await fake({ plan: say({ delta: "x", token_ids: [1], logprobs }) }));
  const stream = client.create({ input: "", timing: true });
  const result = await stream.done;
  for (const [name, object] of [
    ["Delta", stream.deltas[0]],
    ["Logprob", stream.deltas[0].logprobs[0]],
    ["Result", result],
    ["Saved", stream.saved],
    ["Session", client.session],
  ])
    for (const member of Object.keys(object))
      assert.ok(typed_members(name).includes(member), `${name}.${member}`);
});
