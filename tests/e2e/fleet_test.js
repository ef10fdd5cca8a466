// A fleet of processes over a real nats-server: what a client of the gateway reads is what `weir serve` would
// have said, token for token, whatever dies meanwhile. Round after round a worker or NATS is killed, or a
// worker stops for five seconds: 5 rounds, and 200 where WEIR_TEST_BUDGET is 10, as in a long run.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { seeded } from "./bursts.js";
import { Nats, boards, completion, fleet, pause, skip, start_weir, until } from "./fleet_kit.js";
import { start_real } from "./real_server.js";
import { drawn } from "./seeds.js";

const budget = Number(process.env.WEIR_TEST_BUDGET ?? 1);
const rounds = budget > 1 ? 20 * budget : 5;
const streams = 6;
const patient = ["--write-ms", "600000"];  // this process reads as slowly as a busy machine lets it
const rill = new URL("../../models/rill", import.meta.url).pathname;

/** The devices and models of the two kinds of fleets, and what is asked of them. */
const kinds = {
  sim: {
    engine: ["--device", "sim:rate=60"],
    model: "sim=sim:rate=60",
    body: (seed) => ({ model: "sim", prompt: `round ${seed}`, seed, max_tokens: 240 }),
  },
  rill: {
    engine: ["--device", "cpu", "--threads", "1", "--model", `rill=${rill}`],
    model: `rill=${rill}`,
    body: (seed) => ({
      model: "rill",
      prompt: `Once upon a time, in year ${seed},`,
      seed,
      temperature: 0.8,
      max_tokens: 600,
      ignore_eos: true,
    }),
  },
};

for (const [kind, { engine, model, body }] of Object.entries(kinds))
  describe(`a fleet of ${kind}`, { skip }, () => {
    const nats = new Nats();
    const workers = [];
    let gateway;
    let alone;
    const join = () => ["--join", nats.url];
    const start_worker = () => start_weir(["worker", ...join(), ...engine, "--drain-s", "1"]);

    before(async () => {
      await nats.start();
      workers.push(await start_worker(), await start_worker());
      const listen = ["--listen", "127.0.0.1:0", ...patient];
      gateway = await start_weir(["gateway", ...join(), "--model", model, ...listen]);
      alone = await start_real({ args: [...engine, ...patient] });
      await two_workers();
    });
    after(async () => {
      for (const one of [gateway, ...workers]) await one?.kill();
      await alone?.stop();
      await nats.remove();
    });

    async function two_workers() {
      await until(async () => {
        const names = (await boards(nats)).map(({ o }) => o);
        return workers.every(({ name }) => names.includes(name));
      }, "both workers say what they have");
      // The gateway has heard both as well: `weir fleet` listens for a second.
    }
    const bodies_of = (n) => Array.from({ length: streams }, (_, i) => body(drawn(100 * n + i) % 100000));
    const right_ones = (bodies) => Promise.all(bodies.map((b) => completion(alone.url, b).done));

    /** What fails says what the server wrote to its log. */
    async function said_by(server, answers) {
      try {
        return await answers;
      } catch (e) {
        throw new Error(`${e.stack} ${e.cause}\n${server.log().slice(-4000)}`);
      }
    }

    /** Streams over which something happens once all of them run; what each said is compared. */
    async function undisturbed_by(n, happens) {
      for (let tried = 0; tried < 10; tried++) if (await compared(n + 10_000 * tried, happens)) return;
      assert.fail("no stream was running when it was to happen");
    }

    /** False where the streams were over before, and nothing happened. */
    async function compared(n, happens) {
      const bodies = bodies_of(n);
      const expected = right_ones(bodies);
      const running = bodies.map((b) => completion(gateway.url, b));
      const first = seeded(drawn(n))() * 150;  // letters
      await until(() => running.every(({ text, over }) => text.length > first || over), "all streams run");
      const in_time = running.some(({ over }) => !over);
      if (in_time) await happens();
      const got = await said_by(gateway, Promise.all(running.map(({ done }) => done)));
      const right = await said_by(alone, expected);
      assert.deepEqual(got, right);
      assert.ok(right.every(({ tokens }) => tokens > 100));
      return in_time;
    }

    test("an answer is that of a server alone", async () => {
      await undisturbed_by(0, async () => {});
    });

    test("the logprobs of a prompt are those of a server alone, or refused by name", async () => {
      const asked = {
        model: kind, prompt: "Once upon a time, ".repeat(40), max_tokens: 3, temperature: 0,
        echo: true, logprobs: 3, prompt_logprobs: 4,
      };
      const answer = async (url) => {
        const how = { method: "POST", headers: { "content-type": "application/json" } };
        const got = await fetch(`${url}/v1/completions`, { ...how, body: JSON.stringify(asked) });
        return { status: got.status, ...(await got.json()) };
      };
      const [far, near] = [await answer(gateway.url), await answer(alone.url)];
      assert.equal(far.status, kind === "sim" ? 400 : 200, JSON.stringify(far));
      assert.deepEqual(far.error, near.error);
      assert.deepEqual(far.choices, near.choices);
      if (kind === "rill") assert.ok(far.choices[0].prompt_logprobs.length > 100);
    });

    test("a worker is killed under its answers, another one goes on", async () => {
      for (let round = 1; round <= rounds; round++) {
        const who = round % 2;
        await undisturbed_by(round, () => workers[who].kill());
        workers[who] = await start_worker();
        await two_workers();
      }
    });

    test("a worker stops for five seconds, and comes back too late", async () => {
      await undisturbed_by(1000, async () => {
        workers[0].signal("SIGSTOP");
        await pause(5000);
        workers[0].signal("SIGCONT");
      });
      await undisturbed_by(1001, async () => {});
      await two_workers();
    });

    test("NATS is killed and started again", async () => {
      for (let round = 0; round < Math.max(1, rounds / 5); round++)
        await undisturbed_by(2000 + round, async () => {
          await nats.kill();
          await pause(300);
          await nats.start();
        });
      await two_workers();
    });

    test("a worker that is told to end moves its answers and ends well", async () => {
      const leaving = workers[0];
      await undisturbed_by(3000, async () => leaving.signal("SIGTERM"));
      assert.equal(await leaving.ended, 0, leaving.log());
      workers[0] = await start_worker();
      await two_workers();
    });

    test("a gateway's metrics and statistics show its workers", async () => {
      await two_workers();
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(metrics, /^weir_fleet_workers\{state="ready"\} 2$/m);
      for (const { name } of workers)
        assert.match(metrics, new RegExp(`weir_fleet_engine_jobs\\{worker="${name}"`));
      const stats = await (await fetch(`${gateway.url}/v1/stats`)).json();
      assert.deepEqual(stats.fleet.workers.map((w) => w.worker).sort(), workers.map((w) => w.name).sort());
      assert.equal(stats.fleet.workers[0].models[0].name, kind);
    });

    test("a worker that is drained is free, goes on, and takes jobs again when it is told to", async () => {
      const [{ name }] = workers;
      await undisturbed_by(4000, async () => {
        const free = await fleet(nats, ["drain", name, "--drain-s", "0.2"]);
        assert.equal(free.code, 0, free.log);
        assert.match(free.text, new RegExp(`${name} .* leaving`));
      });
      await undisturbed_by(4001, async () => {});
      assert.match((await fleet(nats, ["undrain", name])).text, new RegExp(`${name} .* ready`));
      await undisturbed_by(4002, async () => {});
      const unknown = await fleet(nats, ["drain", "a".repeat(16)]);
      assert.notEqual(unknown.code, 0);
      assert.match(unknown.log, /no worker aaaaaaaaaaaaaaaa/);
    });

    test("with no worker left a request is refused by name, and served once one is back", async () => {
      await Promise.all(workers.map((one) => one.kill()));
      const ask = () => completion(gateway.url, { ...body(1), max_tokens: 3 }).done;
      await until(async () => {
        try {
          await ask();
          return false;
        } catch (e) {
          return /503|unavailable/.test(`${e}`);
        }
      }, "a request is refused with 503");
      workers[0] = await start_worker();
      await until(async () => {
        try {
          return (await ask()).tokens === 3;
        } catch {
          return false;
        }
      }, "a request is served again");
      workers[1] = await start_worker();
      await two_workers();
    });
  });
