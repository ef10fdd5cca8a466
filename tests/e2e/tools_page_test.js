// The examples of docs/tools.md: each is run as it stands there, against a scripted model.
import assert from "node:assert/strict";
import { on } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import WebSocket from "ws";

import { start_real } from "./real_server.js";

const skip = process.env.WEIR_BIN ? false : "WEIR_BIN is not set";
const here = new URL(".", import.meta.url).pathname;
const page = readFileSync(join(here, "../../docs/tools.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "weir-tools-page-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const script = [
  { when: "12:00 utc</tool_response>", say: "<think>\nI know.\n</think>\n\nIt is noon." },
  { when: "what time", say: '<tool_call>\n{"name": "clock", "arguments": {"zone": "utc"}}\n</tool_call>' },
];

/** The text of the example that is called so; without a name, what all share. */
function example(name) {
  const fence = "```js" + (name ? ` ${name}` : "") + "\n";
  const from = page.indexOf(fence);
  assert.notEqual(from, -1, `docs/tools.md has an example ${name}`);
  return page.slice(from + fence.length, page.indexOf("\n```", from));
}

describe("docs/tools.md", { skip }, () => {
  let server;
  before(async () => {
    const file = join(folder, "script.jsonl");
    writeFileSync(file, script.map((line) => JSON.stringify(line)).join("\n"));
    server = await start_real({
      args: ["--device", `sim:script=${file},rate=0`, "--chat-template", join(here, "qwen_like.jinja")],
    });
  });
  after(() => server?.stop());

  for (const name of ["chat", "messages", "responses", "weir.v1"])
    test(name, async () => {
      const printed = [];
      const known = {
        url: server.url, OpenAI, Anthropic, WebSocket, on,
        console: { log: (text) => printed.push(text) },
      };
      const body = `return (async () => {${example("")}\n${example(name)}})()`;
      await new Function(...Object.keys(known), body)(...Object.values(known));
      assert.deepEqual(printed, ["It is noon."]);
    });
});
