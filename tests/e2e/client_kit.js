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
