// Coding agents, as people use them: `weir launch` starts each without a terminal against a scripted model,
// and it writes a file, runs a check that fails, edits the file and runs the check again.
//
// All three programs run here as they are, and reach nothing but the server: their HOME is a new folder, and
// every other host is behind a proxy that nobody serves. They are a gigabyte, which only `./run test --long`
// installs (package.json beside this file); elsewhere this test is skipped.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, describe, test } from "node:test";

import { start_real } from "../real_server.js";

const here = new URL(".", import.meta.url).pathname;
const template = join(here, "..", "qwen_like.jinja");
const page = 64;  // tokens: docs/memory.md
const task = "Write add.js so that node check.js passes.";
const check = `const add = require("./add.js");
const right = add(2, 3) === 5;
console.log(right ? "checks: all passed" : "checks: 1 failed");
process.exit(right ? 0 : 1);
`;
const wrong = "module.exports = (a, b) => a - b;";
const right = "module.exports = (a, b) => a + b;";

// JSON as templates write it. An answer that the template would write is found in the cache as a whole.
function spaced(value) {
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, v]) => `${JSON.stringify(key)}: ${spaced(v)}`).join(", ")}}`;
}
const call = (name, input) => `<tool_call>\n${spaced({ name, arguments: input })}\n</tool_call>`;
const thought = (text) => `<think>\n${text}\n</think>\n\n`;

const patch = (...lines) =>
  ["apply_patch <<'EOF'", "*** Begin Patch", ...lines, "*** End Patch", "EOF"].join("\n");

// For each agent: its program in node_modules, its arguments, and its calls. `wrote` and `edited` are what
// it tells the model of a file that is written and edited.
const agents = {
  claude: {
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    args: ["-p", task, "--allowedTools", "Bash Edit Write Read"],
    write: (file) => call("Write", { file_path: file, content: `${wrong}\n` }),
    wrote: "File created successfully",
    // It sends calls back with defaults put in front.
    edit: (file_path) =>
      call("Edit", { replace_all: false, file_path, old_string: "a - b", new_string: "a + b" }),
    edited: "has been updated",
    run: call("Bash", { command: "node check.js", description: "check" }),
  },
  codex: {
    program: "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
    args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task],
    write: () => call("exec_command", { cmd: patch("*** Add File: add.js", `+${wrong}`) }),
    wrote: "A add.js",
    edit: () =>
      call("exec_command", { cmd: patch("*** Update File: add.js", "@@", `-${wrong}`, `+${right}`) }),
    edited: "M add.js",
    run: call("exec_command", { cmd: "node check.js" }),
  },
  opencode: {
    program: "opencode-linux-x64-baseline/bin/opencode",
    args: ["run", task],
    write: (file) => call("write", { filePath: file, content: `${wrong}\n` }),
    wrote: "Wrote file successfully",
    edit: (file) => call("edit", { filePath: file, oldString: "a - b", newString: "a + b" }),
    edited: "Edit applied successfully",
    run: call("bash", { command: "node check.js", description: "check" }),
  },
};

const folder = mkdtempSync(join(tmpdir(), "weir-coding-"));
const servers = [];
after(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
});

/** What the model says: the last thing that happened decides, so later steps come first. */
const script_of = ({ write, wrote, edit, edited, run }, file) => [
  { when: "checks: all passed", say: `${thought("It passes.")}Fixed: add adds.` },
  { when: edited, say: run },
  { when: "checks: 1 failed", say: thought("A wrong sign.") + edit(file) },
  { when: wrote, say: run },
  { say: `${thought("The file is missing.")}I begin.${write(file)}` },
];

async function serve(name, script) {
  const file = join(folder, `${name}.jsonl`);
  writeFileSync(file, script.map((line) => JSON.stringify(line)).join("\n"));
  const server = await start_real({
    args: ["--device", `sim:script=${file},rate=0,ctx=1000000`, "--chat-template", template,
      "--strict-fields"],  // every field that they send is known
  });
  servers.push(server);
  return server;
}

/** Runs `weir launch NAME` in `at`, with a home of its own and nothing of this process's environment. */
function launch(name, server, at) {
  const home = join(folder, `${name}-home`), bin = join(folder, `${name}-bin`);
  mkdirSync(home);
  mkdirSync(bin);
  symlinkSync(join(here, "node_modules", agents[name].program), join(bin, name));
  const nobody = "http://127.0.0.1:9";
  const env = {
    HOME: home, PATH: [bin, dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter), LANG: "C.UTF-8",
    HTTP_PROXY: nobody, HTTPS_PROXY: nobody, NO_PROXY: "127.0.0.1,localhost",
  };
  const args = ["launch", name, "--url", server.url, "--", ...agents[name].args];
  return new Promise((resolve) => {
    const options = { cwd: at, env, timeout: 240_000, killSignal: "SIGKILL" };
    const child = execFile(process.env.WEIR_BIN, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? error.code ?? error.signal : 0, stdout, stderr }));
    child.stdin.end();
  });
}

describe("coding agents", () => {
  for (const [name, agent] of Object.entries(agents)) {
    const skip = !process.env.WEIR_BIN ? "WEIR_BIN is not set" :
      !existsSync(join(here, "node_modules", agent.program)) ? "./run test --long installs it" : false;

    test(`${name} writes, runs and fixes a file`, { skip }, async () => {
      const project = join(folder, name), file = join(project, "add.js");
      mkdirSync(project);
      writeFileSync(join(project, "check.js"), check);
      const server = await serve(name, script_of(agent, file));
      const { code, stdout, stderr } = await launch(name, server, project);
      assert.equal(code, 0, stdout + stderr);
      assert.match(stdout, /Fixed: add adds\./);
      assert.equal(readFileSync(file, "utf8"), `${right}\n`);
      execFileSync(process.execPath, ["check.js"], { cwd: project });

      // Small jobs beside the conversation make a title. Each turn computes what is new in it alone: all that
      // the turn before had read and said was cached, but for the answer's end, which fills no page.
      const { jobs } = await (await fetch(`${server.url}/v1/jobs`)).json();
      const turns = jobs.reverse().filter((job) => job.prompt_tokens > 10_000);
      assert.equal(turns.length, 5, JSON.stringify(jobs));
      turns.forEach((turn, i) => {
        assert.equal(turn.finish_reason, "stop");
        const before = turns[i - 1];
        const known = before ? before.prompt_tokens + before.tokens : 0;
        assert.ok(turn.cached_tokens >= known - page, `turn ${i}: ${JSON.stringify([before, turn])}`);
      });
    });
  }
});
