// real_server.js — the binary that WEIR_BIN names, serving its simulated device or what `args` ask for.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Resolves once it says it is ready. log(): what it wrote to stderr so far, and all of it after stop().
 * @returns {Promise<{url: string, port: number, log: () => string, signal: (name: string) => boolean,
 *   ended: Promise<number>, stop: () => Promise<void>}>} */
export async function start_real({ port = 0, args = ["--device", "sim"], host = "127.0.0.1" } = {}) {
  const server = spawn(process.env.WEIR_BIN, ["serve", ...args, "--listen", `${host}:${port}`], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise((resolve) => server.once("close", resolve));
  let log = "";
  server.stderr.on("data", (text) => (log += text));
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: server.stdout }).on("line", (line) => {
      const ready = /^weir ready (http:\/\/\S+)/.exec(line);
      if (ready) resolve(ready[1]);
    });
    server.once("error", reject);
    ended.then((code) => reject(new Error(`weir serve ended with ${code} before it was ready:\n${log}`)));
  });
  return {
    url,
    log: () => log,
    signal: (name) => server.kill(name),
    ended,
    port: Number(new URL(url).port),
    stop: async () => {
      server.kill("SIGKILL");
      await ended;
    },
  };
}
