// A stranger on the bus of a fleet, who may say anything under any subject and hears nothing: noise, broken
// frames, what was said before, guessed names and ids, another key's questions. No answer moves, all of it is
// counted, and no process grows. 5 seconds, and 60 where WEIR_TEST_BUDGET is 10, as in a long run.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";

import { seeded } from "./bursts.js";
import { Nats, boards, completion, pause, skip, start_weir, until } from "./fleet_kit.js";
import { NatsClient } from "./nats_client.js";
import { start_real } from "./real_server.js";
import { drawn } from "./seeds.js";

const seconds = Number(process.env.WEIR_TEST_BUDGET ?? 1) > 1 ? 60 : 5;
const patient = ["--write-ms", "600000"];
const device = "sim:rate=50";
const most_growth = 96 << 20; // bytes
const per_turn = 60; // messages, every 20 ms

// The members of the cell hear and say all; so does a configuration with a user for each role, which
// docs/fleet/nats-server.conf is.
const config = `
authorization {
  users: [
    { user: member, password: m, permissions: { publish: ">", subscribe: ">" } }
    { user: stranger, password: s, permissions: { publish: ">", subscribe: { deny: ">" } } }
  ]
}
no_auth_user: member
`;

const kinds = 28; // of frames (core/fleet/frame_kind.h), and one more
const base = "weir.1.main";

describe("a stranger on the bus", { skip }, () => {
  const nats = new Nats(config);
  const workers = [];
  const tap = new NatsClient();
  const stranger = new NatsClient();
  const said = []; // all that members have said, for the stranger to say again
  let gateway, alone, random;

  before(async () => {
    await nats.start();
    random = seeded(drawn(1));
    await tap.open(nats.url);
    await tap.listen(">", (m) => {
      if (said.length < 4000 && m.subject.startsWith(base)) said.push(m);
    });
    const words = ["--join", nats.url];
    for (let i = 0; i < 2; i++) workers.push(await start_weir(["worker", ...words, "--device", device]));
    const listen = ["--listen", "127.0.0.1:0", "--dead-after-ms", "20000", ...patient]; // a busy machine
    gateway = await start_weir(["gateway", ...words, "--model", `sim=${device}`, ...listen]);
    alone = await start_real({ args: ["--device", device, ...patient] });
    await until(async () => (await boards(nats)).length === 2, "both workers say what they have");
    await stranger.open(nats.url, { user: "stranger", pass: "s" });
  });
  after(async () => {
    tap.close();
    stranger.close();
    for (const one of [gateway, ...workers]) await one?.kill();
    await alone?.stop();
    await nats.remove();
  });

  const below = (n) => Math.floor(random() * n);
  const one_of = (all) => all[below(all.length)];
  const noise = (n) => Buffer.from(Array.from({ length: n }, () => below(256)));
  const name = () => Array.from({ length: 16 }, () => "abcdefghijklmnopqrstuvwxyz234567"[below(32)]).join("");
  const frame = (kind, body) => Buffer.concat([Buffer.from([1, kind]), body]);
  const member = () => one_of([...workers.map((w) => w.name), name()]);
  const subjects = () => {
    const gateways = said.map(({ subject }) => /\.g\.(\w+)\./.exec(subject)?.[1]).filter(Boolean);
    const to = gateways.length > 0 && below(4) > 0 ? one_of(gateways) : name();
    return [
      `${base}.o.${member()}.job`, `${base}.o.${member()}.ctl`, `${base}.g.${to}.tok`, `${base}.g.${to}.ctl`,
      `${base}.board.${member()}`, `${base}.pulse.${name()}`, `${base}.find`, `${base}.hello`,
    ];
  };

  /** Fields as core/fleet/bytes.h writes them: ids are 16 bytes, numbers varints, texts have a length. */
  const varint = (n) => {
    const out = [];
    for (; n > 127; n = Math.floor(n / 128)) out.push((n % 128) | 128);
    return Buffer.from([...out, n]);
  };
  const text = (s) => Buffer.concat([varint(s.length), Buffer.from(s)]);
  const number = () => varint(below(2 ** 31));
  const [find_kind, adopt_kind, list_kind, listed_kind, wish_kind] = [18, 9, 23, 24, 27];
  const drain_kind = 16; // an operator's order: who knows a worker's name may give it, if permitted

  /** What a stranger can say, each with a subject and bytes. */
  const tricks = {
    noise: () => [one_of(subjects()), noise(below(400))],
    "a kind and noise": () => {
      const kind = below(kinds + 10);
      return [one_of(subjects()), frame(kind === drain_kind ? 0 : kind, noise(below(200)))];
    },
    "another version": () => [one_of(subjects()), Buffer.concat([Buffer.from([2 + below(250)]), noise(20)])],
    truncated: () => {
      const { subject, bytes } = one_of(said);
      return [subject, bytes.subarray(0, below(bytes.length))];
    },
    longer: () => {
      const { subject, bytes } = one_of(said);
      return [subject, Buffer.concat([bytes, noise(1 + below(50))])];
    },
    "one byte is another": () => {
      const { subject, bytes } = one_of(said);
      if (/\.board\.|\.ctl$|\.job$/.test(subject)) return [one_of(subjects()), noise(30)];
      const other = Buffer.from(bytes);
      other[below(2)] ^= 1 + below(255);
      return [subject, other];
    },
    "what was said before": () => {
      const { subject, bytes } = one_of(said);
      return [subject, bytes];
    },
    "a job, to the other worker": () => {
      const jobs = said.filter(({ subject }) => subject.endsWith(".job"));
      const { bytes } = one_of(jobs);
      return [`${base}.o.${one_of(workers).name}.job`, bytes];
    },
    "under another subject": () => [one_of(subjects()), one_of(said).bytes],
    "a guessed id, looked for": () => [
      `${base}.find`,
      frame(find_kind, Buffer.concat([noise(16), number(), number(), text(name())])),
    ],
    "the id of a job, looked for with another key": () => {
      const jobs = said.filter(({ subject, bytes }) => subject.endsWith(".job") && bytes[1] === 1);
      const id = one_of(jobs).bytes.subarray(2, 18);
      return [
        `${base}.find`,
        frame(find_kind, Buffer.concat([id, varint(1 + below(99)), number(), text(name())])),
      ];
    },
    "a guessed id, cancelled as an admin": () => [
      `${base}.find`,
      frame(list_kind,
        Buffer.concat([number(), text(name()), Buffer.from([0, 1]), noise(16), Buffer.from([1])])),
    ],
    "all jobs, asked for": () => [
      `${base}.find`,
      frame(list_kind, Buffer.concat([number(), text(name()), Buffer.from([0, 0, 0])])),
    ],
    "an order to unload the model": () => [
      `${base}.o.${one_of(workers).name}.ctl`,
      frame(
        wish_kind,
        Buffer.concat([number(), Buffer.from([1, 1]), text("sim"), text('{"action":"unload"}')]),
      ),
    ],
    "an invented list of jobs": () => [
      one_of(subjects()),
      frame(listed_kind, Buffer.concat([number(), text(member()), Buffer.from([0, 1, 0, 0])])),
    ],
    "a guessed id, adopted": () => [
      `${base}.o.${member()}.ctl`,
      frame(adopt_kind, Buffer.concat([noise(16), varint(0), number(), text(name()), number(), varint(0)])),
    ],
    "a worker that is none": () => {
      const o = name();
      const models = [{ name: "sim", batch: 9, context: 9 }];
      const board = { v: 1, o, state: "ready", number: 1, models };
      return [`${base}.board.${below(2) > 0 ? o : one_of(workers).name}`, JSON.stringify(board)];
    },
    "a long text": () => [one_of(subjects()), Buffer.alloc(below(200_000), below(256))],
  };

  const resident = ({ pid }) => {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return 1024 * Number(/VmRSS:\s+(\d+)/.exec(status)[1]);
  };
  const metric = async (pattern) => {
    const all = await (await fetch(`${gateway.url}/metrics`)).text();
    return [...all.matchAll(new RegExp(`^${pattern} (\\d+)$`, "gm"))].reduce((n, [, v]) => n + Number(v), 0);
  };

  /** Says things for a while; how many of each. */
  async function disturbs(until_ms) {
    const counts = {};
    while (Date.now() < until_ms) {
      for (let i = 0; i < per_turn; i++) {
        const kind = i === 0 ? "a long text" : one_of(Object.keys(tricks).slice(0, -1));
        counts[kind] = (counts[kind] ?? 0) + 1;
        await stranger.say(...tricks[kind]());
      }
      await pause(20);
    }
    await stranger.flush();
    return counts;
  }

  const bodies = (n) =>
    Array.from({ length: 8 }, (_, i) => {
      const seed = drawn(100 * n + i) % 100000;
      return { model: "sim", prompt: `stranger ${seed}`, seed, max_tokens: 50 * seconds };
    });

  test("the stranger may not listen", async () => {
    const deaf = await new NatsClient().open(nats.url, { user: "stranger", pass: "s" });
    await deaf.listen(`${base}.>`, () => assert.fail("it heard something"));
    await until(() => deaf.errors.length > 0, "the server refuses it");
    assert.match(deaf.errors[0], /Permissions Violation for Subscription/i);
    deaf.close();
  });

  test("no answer moves, all is counted, and no process grows", async () => {
    await Promise.all(bodies(0).map((b) => completion(gateway.url, { ...b, max_tokens: 20 }).done));
    const before_it = [gateway, ...workers].map(resident);
    const right = bodies(1).map((b) => completion(alone.url, b).done);
    const running = bodies(1).map((b) => completion(gateway.url, b));
    await until(() => running.every((s) => s.text.length > 20), "all streams run");
    const moved = await metric("weir_fleet_jobs_moved_total");
    const counts = await disturbs(Date.now() + 1000 * seconds);
    assert.ok(Object.values(counts).every((n) => n > 20), JSON.stringify(counts));
    assert.deepEqual(await Promise.all(running.map(({ done }) => done)), await Promise.all(right));
    assert.equal(await metric("weir_fleet_jobs_moved_total"), moved, gateway.log().slice(-2000));
    await pause(1000); // boards have told what workers counted
    const counted = async (pattern, least) => {
      const n = await metric(pattern);
      assert.ok(n >= least, `${pattern} is ${n}, of at least ${least}: ${JSON.stringify(counts)}`);
    };
    await counted("weir_fleet_frames_broken_total", counts.noise / 8);
    await counted("weir_fleet_frames_void_total", 1);
    await counted("weir_fleet_worker_frames_broken_total\\{[^}]*\\}", counts.noise / 8);
    await counted("weir_fleet_worker_untold_total\\{[^}]*\\}", 1);
    [gateway, ...workers].forEach((one, i) => {
      const grown = resident(one) - before_it[i];
      assert.ok(grown < most_growth, `process ${i} has ${grown} bytes more`);
    });
  });

  test("afterwards answers are what they were, and no worker has a job", async () => {
    const expected = await Promise.all(bodies(2).map((b) => completion(alone.url, b).done));
    const got = await Promise.all(bodies(2).map((b) => completion(gateway.url, b).done));
    assert.deepEqual(got, expected);
    await until(async () => (await boards(nats)).every((b) => b.models.every(({ jobs }) => jobs === 0)),
      "jobs that were said again have ended");
  });
});
