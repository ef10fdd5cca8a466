// painted.mjs — how even a bursty stream is in a browser: at the socket, and at the eye with `play: true`.
//
//   node tests/bench/net/painted.mjs [ROUNDS]      (5; `./run test` installs what it needs)
//
// The source sends 1 to 5 tokens every 45 ms and stalls for 150 ms every 50 tokens. A page in Chromium
// records when each token came and after which frame it was painted. A gap CV is the standard deviation of
// the gaps over their mean. Each line is one round; the last has medians.
import { createRequire } from "node:module";
import { bursty, gap_cv, watch_paint } from "../../e2e/bursts.js";
import { start_fake } from "../../e2e/fake_server.js";

const { chromium } = createRequire(new URL("../../e2e/", import.meta.url))("playwright-core");
const tokens = 800;

function line(name, { socket, eye, first_ms, latest_ms }) {
  const ratio = (eye / socket).toFixed(3);
  console.log(
    `${name}: gap CV ${socket.toFixed(2)} at the socket, ${eye.toFixed(2)} at the eye, ratio ${ratio}; ` +
      `first token waits ${first_ms.toFixed(1)} ms, the longest wait is ${latest_ms.toFixed(0)} ms`,
  );
}

async function measure(browser, seed) {
  const arrivals = bursty(seed, tokens);
  const gap_ms = (i) => (i === 0 ? 0 : arrivals[i] - arrivals[i - 1]);
  const server = await start_fake({ plan: () => ({ pieces: Array(tokens).fill({ delta: "x" }), gap_ms }) });
  const page = await browser.newPage();
  await page.goto(server.url + "style.css"); // a page of the same origin
  const { seen } = await page.evaluate(watch_paint);
  await page.close();
  await server.stop();
  return {
    socket: gap_cv(seen.map(({ at }) => at)),
    eye: gap_cv(seen.map(({ painted }) => painted)),
    first_ms: seen[0].shown - seen[0].at,
    latest_ms: Math.max(...seen.map(({ shown, at }) => shown - at)),
  };
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const rounds = Number(process.argv[2] ?? 5);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-background-networking"],
});
const all = [];
for (let seed = 1; seed <= rounds; seed++) {
  all.push(await measure(browser, seed));
  line(`round ${seed}`, all.at(-1));
}
await browser.close();
const middle = (name) => median(all.map((one) => one[name]));
line("median", Object.fromEntries(Object.keys(all[0]).map((name) => [name, middle(name)])));
