// client_kit.js — what the tests of weir.js share: the module, servers and clients that end with the file.
import { after } from "node:test";
import { WebSocket } from "ws";
import { load_module, start_fake } from "./fake_server.js";

export const weir = await load_module("weir.js");

const clients = [];
const servers = [];
after(() => {
  clients.forEach((client) => client.close());
  return Promise.all(servers.map((server) => server.stop()));
});

export async function fake(options) {
  const server = await start_fake(options);
  servers.push(server);
  return server;
}

export function client_of(server, options) {
  const client = weir.connect(server.url, { WebSocket, ...options });
  clients.push(client);
  return client;
}

/** Resolves with the next state change, of a client or a stream, that `wanted` accepts. */
export const state = (of, wanted) =>
  new Promise((resolve) => {
    const off = of.on("state", (change) => wanted(change) && (off(), resolve(change)));
  });

/** Resolves once a stream has received this many tokens. */
export const arrived = (stream, tokens) =>
  new Promise((resolve) => stream.on("arrived", ({ seq }) => seq >= tokens && resolve()));

export const say = (...pieces) => {
  return () => ({ pieces, gap_ms: () => 1 });
};

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Numbers in [0, 1) from a seed: mulberry32. */
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** 1 to 5 tokens every 45 ms, and a stall of 150 ms every 50 tokens: when each of them arrives. */
export function bursty(seed, tokens = 600) {
  const random = seeded(seed);
  const arrivals = [];
  for (let at = 100; arrivals.length < tokens; at += 45) {
    for (let i = 1 + Math.floor(random() * 5); i > 0 && arrivals.length < tokens; i--) {
      arrivals.push(at);
      if (arrivals.length % 50 === 0) at += 150;
    }
  }
  return arrivals;
}

/** The standard deviation of the gaps between these times, over their mean. */
export function gap_cv(times) {
  const gaps = times.slice(1).map((time, i) => time - times[i]);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  return Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length) / mean;
}
