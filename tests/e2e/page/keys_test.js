// A server with keys: the page swaps a key for a token of an hour, and keeps the token alone.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  answered,
  body,
  button,
  connected,
  fake,
  grows,
  has_text,
  no_browser,
  no_real,
  open_page,
  real,
} from "./kit.js";
import { schemes, send, set, shot, sizes, state } from "./kit.js";

const key = "open-sesame-0123456789";
const everything = (page) =>
  page.evaluate(() =>
    JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie, location.href]),
  );

async function real_with_keys(t) {
  const folder = mkdtempSync(join(tmpdir(), "weir-keys-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "keys"), key + "\n");
  return real(t, { args: ["--device", "sim", "--api-key-file", join(folder, "keys")] });
}

async function type_key(page, text) {
  await page.getByLabel("Key", { exact: true }).fill(text);
  await button(page, "Connect").click();
}

/** An answer that waits in the middle until the test lets it go on, and then comes to its end. */
const held = {
  tokens: "150",
  start: (t) => fake(t, { key, hold_at: 30 }),
  finish: async (page, server) => {
    server.release();
    await answered(page);
    await state(page)
      .getByText(/^reached its limit of/)
      .waitFor();
    assert.ok((await body(page).innerText()).length > 100);
  },
};

/** An answer of minutes, which the test stops once it has gone on. */
const long = {
  tokens: "8000",
  start: real_with_keys,
  finish: async (page) => {
    await grows(page);
    await button(page, "Stop").click();
    await answered(page);
  },
};

function keys_spec(start, midway) {
  test("a wrong key is refused in words; a right one becomes a token, and is kept nowhere", async (t) => {
    const page = await open_page(t, await start(t));
    await page.getByText("The server asks for a key.").waitFor();
    await type_key(page, "open-barley");
    await page.getByText("The server does not accept this key.").waitFor();
    await type_key(page, key);
    await connected(page);
    assert.ok(!(await everything(page)).includes(key));
    assert.equal(await page.getByLabel("Key", { exact: true }).inputValue(), "");
    const kept = JSON.parse(await page.evaluate(() => sessionStorage.getItem("weir.token")));
    assert.ok(Math.abs(kept.expires_at - Date.now() / 1000 - 3600) < 60);
    await set(page, { "Max tokens": "8000" }); // more than are written before the click on Stop
    await send(page, "hello");
    await has_text(page);
    await button(page, "Stop").click();
    await page.locator("#device-now").waitFor(); // /v1/stats takes the token, too
    await page.reload();
    await connected(page);
  });

  test("a reload in mid-answer goes on with the token", async (t) => {
    const server = await midway.start(t);
    const page = await open_page(t, server);
    await type_key(page, key);
    await connected(page);
    await set(page, { "Max tokens": midway.tokens, "Show text": "live" });
    await send(page, "hello");
    await has_text(page);
    await page.reload();
    await has_text(page);
    await midway.finish(page, server);
  });
}

describe("keys", { skip: no_browser }, () => {
  keys_spec((t) => fake(t, { key }), held);

  test("a token whose hour is over is asked for anew", async (t) => {
    const page = await open_page(t, await fake(t, { key }));
    await type_key(page, key);
    await connected(page);
    await page.evaluate(() => {
      const kept = JSON.parse(sessionStorage.getItem("weir.token"));
      sessionStorage.setItem("weir.token", JSON.stringify({ ...kept, expires_at: 1 }));
    });
    await page.reload();
    await page.getByText("The server asks for a key.").waitFor();
    await type_key(page, key);
    await connected(page);
  });

  test("a token that expires while the page is open is asked for at the next request", async (t) => {
    const expired = { code: "token_expired", message: "this token has expired" };
    let tokens = 0;
    const plan = () => (server.tokens.size === tokens ? { refuse: expired } : undefined);
    const server = await fake(t, { key, plan });
    const page = await open_page(t, server);
    await type_key(page, key);
    await connected(page);
    tokens = 1;
    await send(page, "hello");
    await page.getByText("The hour of your key is over. Type it again.").waitFor();
    await type_key(page, key);
    await connected(page);
    await button(page, "Retry").click();
    await grows(page);
  });

  test("a token is for this page's origin and its own user", async (t) => {
    const server = await fake(t, { key });
    const page = await open_page(t, server);
    for (let i = 0; i < 2; i++) {
      await type_key(page, key);
      await connected(page);
      await page.evaluate(() => sessionStorage.removeItem("weir.token"));
      await page.reload();
      await page.getByText("The server asks for a key.").waitFor();
    }
    const [first, second] = [...server.tokens.values()];
    assert.equal(first.origin, new URL(server.url).origin);
    assert.equal(first.ttl_s, 3600);
    assert.ok(first.sub.length > 10);
    assert.equal(second.sub, first.sub, "a renewed token sees the same jobs");
  });

  for (const colorScheme of schemes)
    for (const [name, viewport] of Object.entries(sizes))
      test(`a key is asked for at the top, ${colorScheme}, ${name}`, async (t) => {
        const page = await open_page(t, await fake(t, { key }), { viewport, colorScheme });
        await page.getByText("The server asks for a key.").waitFor();
        const { y } = await button(page, "Connect").boundingBox();
        assert.ok(y < 250, `${y} px`);
        await shot(page, `${colorScheme}-${name}-key`);
      });
});

describe("keys, on the real server", { skip: no_real }, () => {
  keys_spec(real_with_keys, long);
});
