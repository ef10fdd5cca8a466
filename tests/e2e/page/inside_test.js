// What the page shows of the inside of a server, and what an administrator does there: the strip of a device,
// the row of a model, its buttons, and the key.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";

import { busy } from "../fake_server.js";
import { body, button, connected, fake, grows, no_browser, no_real, open_page, real } from "./kit.js";
import { schemes, send, set, shot, sizes, unfold, view, visit } from "./kit.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const gb = 1e9;
const card = {
  device: "cuda:0",
  total: 80 * gb,
  outside: 0.5 * gb,
  context: 0.6 * gb,
  reserve: 0.9 * gb,
  models: 60 * gb,
  free: 18 * gb,
  weights: 18.5 * gb,
  workspaces: 1.5 * gb,
  runtime: 0.25 * gb,
  staging: 0.75 * gb,
  pages: { used: 9 * gb, cached: 11 * gb, free: 19 * gb },
};
const figures = { running: 0, queued: 0, share: 1, share_asked: 0, share_got: 0, pinned: false };
const models = [
  { ...figures, name: "chat", state: "ready", running: 3, queued: 2, share: 3, share_asked: 0.75,
    share_got: 0.71, pinned: true, last_used_s: 0 },
  { ...figures, name: "small", state: "ready", share_asked: 0.25, share_got: 0.29, last_used_s: 200 },
  { ...figures, name: "big", state: "loading", progress: 0.42 },
  { ...figures, name: "napping", state: "asleep", level: "host", last_used_s: 7300 },
  { ...figures, name: "broken", state: "failed", reason: "broken.gguf ends at byte 12" },
  { ...figures, name: "SUB/never", state: "absent" },
];

const row = (page, name) =>
  page.locator(".model-row").filter({ has: page.locator(".who").getByText(name, { exact: true }) });
const press = (page, order, name) => page.getByRole("button", { name: `${order}: ${name}`, exact: true });
const known = (page) => page.getByText(/^The admin key is known/);

async function type_admin_key(page, key) {
  await page.getByLabel("Admin key").fill(key);
  await button(page, "Use").click();
}

/** The parts of a strip, in bytes, and what their widths are of the strip's, by kind. */
const parts_of = (page, device) =>
  page.locator(".strip-of").filter({ hasText: device }).locator(".strip").evaluate((bar) => {
    const parts = [...bar.children].map((it) => [it.className, it]);
    const whole = bar.getBoundingClientRect().width;
    return {
      bytes: Object.fromEntries(parts.map(([kind, it]) => [kind, Number(it.dataset.bytes)])),
      widths: Object.fromEntries(parts.map(([kind, it]) => [kind, it.getBoundingClientRect().width / whole])),
      titles: parts.filter(([, it]) => !it.hidden).map(([, it]) => it.title),
      label: bar.ariaLabel,
    };
  });
const sum = (numbers) => Object.values(numbers).reduce((a, b) => a + b, 0);

async function serious(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** A server that shows all states of a model. */
async function full(t, options) {
  const server = await fake(t, options);
  server.stats = { ...busy, models: models.slice(0, 4).map((m) => ({ ...m, tokens: 0 })), devices: [card] };
  server.admin = { models, devices: [card] };
  return server;
}

describe("the inside of a server", { skip: no_browser }, () => {
  test("a strip's parts add up to its device, are as wide as they are large, and say so", async (t) => {
    const page = await visit(t, await full(t));
    await page.locator(".strip-of").waitFor();
    await page.waitForTimeout(500); // parts grow to their widths
    const { bytes, widths, titles, label } = await parts_of(page, "cuda:0");
    assert.equal(sum(bytes), card.total);
    assert.deepEqual(bytes, { weights: 18.5 * gb, used: 9 * gb, cached: 11 * gb, spare: 19 * gb,
      work: 2.5 * gb, outside: 2 * gb, free: 18 * gb });
    for (const [kind, n] of Object.entries(bytes))
      assert.ok(Math.abs(widths[kind] - n / card.total) < 0.02, `${kind}: ${widths[kind]}`);
    assert.equal(titles[0], "weights: 18.5 GB, 23 %");
    assert.match(label, /^cuda:0, 80\.0 GB: weights 18\.5 GB, pages in use 9\.0 GB, .*nobody 18\.0 GB$/);
    assert.ok(await page.locator(".strip-of dl").getByText("pages kept for prompts").isVisible());
  });

  test("a part that is not there is not shown, and a device without a size says so", async (t) => {
    const server = await full(t);
    server.admin.devices = server.stats.devices = [
      { ...card, device: "sim", total: 0, outside: 0, context: 0, reserve: 0, free: 0 }];
    const page = await visit(t, server);
    await page.getByText("its size is not known").waitFor();
    const { bytes, titles } = await parts_of(page, "sim");
    assert.equal(sum(bytes), 60 * gb);
    assert.equal(titles.length, 5);
  });

  test("each model has a row: its state, its speed, its part of the device, its jobs", async (t) => {
    const server = await full(t);
    const page = await visit(t, server);
    await row(page, "chat").waitFor();
    const text = async (name, part) => row(page, name).locator("." + part).textContent();
    assert.match(await text("chat", "facts"), /3 running · 2 waiting/);
    assert.match(await text("chat", "facts"), /asks for 75 % of its device, got 71 % in 10 s · pinned$/);
    assert.match(await text("small", "facts"), /last used 3 min ago$/);
    assert.equal(await text("big", "state"), "loading 42 %");
    assert.equal(await row(page, "big").locator("progress").evaluate((bar) => bar.value), 0.42);
    assert.equal(await text("napping", "state"), "asleep, on the host");
    assert.match(await text("napping", "facts"), /last used 2 h ago$/);
    assert.equal(await text("broken", "reason"), "broken.gguf ends at byte 12");
    assert.equal(await text("SUB/never", "state"), "not loaded");
    const began = Date.now();
    const counting = setInterval(() => {
      server.stats.models[0].tokens = Math.round((Date.now() - began) / 10); // 100 a second
    }, 20);
    t.after(() => clearInterval(counting));
    await page.waitForFunction(() => {
      const facts = document.querySelector(".model-row .facts").textContent;
      const rate = Number(/^([\d.,]+) tokens\/s/.exec(facts)?.[1]);
      return rate > 70 && rate < 130;
    });
  });

  test("progress of a load and of a wake is shown as it goes", async (t) => {
    const server = await full(t);
    const page = await visit(t, server);
    const big = server.admin.models.find(({ name }) => name === "big");
    for (const progress of [0.5, 0.75]) {
      server.admin = { ...server.admin, models: [{ ...big, progress }] };
      await page.getByText(`loading ${100 * progress} %`).waitFor({ timeout: 2000 });
    }
    server.admin.models = [{ ...big, progress: 0, level: "host" }];
    await page.getByText("waking", { exact: true }).waitFor({ timeout: 2000 });
    assert.ok(!(await row(page, "big").locator("progress").evaluate((bar) => bar.hasAttribute("value"))));
    server.admin.models = [{ ...big, state: "ready" }];
    await press(page, "Sleep", "big").waitFor();
    assert.ok(await row(page, "big").locator("progress").isHidden());
  });

  test("a row's buttons are the orders that its state takes, and each orders that", async (t) => {
    const server = await full(t);
    const page = await visit(t, server);
    await row(page, "chat").waitFor();
    const shown = async (name) =>
      row(page, name).locator("[data-order]").evaluateAll((all) =>
        all.filter((it) => !it.hidden).map((it) => it.dataset.order));
    assert.deepEqual(await shown("chat"), ["sleep", "unload"]);
    assert.deepEqual(await shown("big"), []);
    assert.deepEqual(await shown("napping"), ["wake", "unload"]);
    assert.deepEqual(await shown("broken"), ["load"]);
    await press(page, "Sleep", "chat").click();
    await press(page, "Wake", "napping").click();
    await press(page, "Load", "SUB/never").click();
    await press(page, "Unload", "small").click();
    await press(page, "Pinned", "small").click();
    await press(page, "Pinned", "chat").click();
    await row(page, "small").getByLabel("Share").fill("2.5");
    await row(page, "small").getByLabel("Share").press("Enter");
    await page.waitForTimeout(300);
    const orders = server.asked.filter(({ method }) => method === "POST");
    assert.deepEqual(orders.map(({ url, body }) => [url, body]), [
      ["/v1/admin/models/chat", { action: "sleep" }],
      ["/v1/admin/models/napping", { action: "wake" }],
      ["/v1/admin/models/SUB%2Fnever", { action: "load" }],
      ["/v1/admin/models/small", { action: "unload" }],
      ["/v1/admin/models/small", { pinned: true }],
      ["/v1/admin/models/chat", { pinned: false }],
      ["/v1/admin/models/small", { share: 2.5 }],
    ]);
    await row(page, "small").getByLabel("Share").fill("0");
    await row(page, "small").getByLabel("Share").press("Enter");
    await page.waitForTimeout(200);
    assert.equal(server.asked.filter(({ method }) => method === "POST").length, orders.length);
  });

  test("what the server refuses stands in the row, and a button keeps the focus", async (t) => {
    const server = await full(t);
    const message = "64 GB are missing on cuda:0 <b>now</b>";
    server.refuse_order = () => ({ status: 422, message });
    const page = await visit(t, server);
    await press(page, "Load", "broken").click();
    await row(page, "broken").locator(".answer.failed").getByText(message).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.dataset.order), "load");
    await page.waitForTimeout(1000);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.order), "load");
  });

  test("a wrong admin key says so, a right one gives the buttons and is kept nowhere", async (t) => {
    const key = "open-sesame-0123456789";
    const admin_key = "admin-sesame-0123456789";
    const server = await full(t, { key, admin_key });
    const page = await open_page(t, server);
    await page.getByLabel("Key", { exact: true }).fill(key);
    await button(page, "Connect").click();
    await connected(page);
    await row(page, "chat").waitFor();
    assert.ok(await press(page, "Sleep", "chat").isHidden());
    await page.waitForTimeout(1500);
    assert.deepEqual(server.asked, [], "without the admin's key nothing of an admin is asked");
    await type_admin_key(page, "open-barley");
    await page.getByText("The server does not accept this key.").waitFor();
    await shot(page, "inside-wrong-key", { fullPage: true });
    await type_admin_key(page, key);
    await page.getByText("This key is not the key of an admin.").waitFor();
    await page.waitForTimeout(1500);
    const statuses = server.asked.map(({ status }) => status);
    assert.deepEqual(statuses, [401, 403], "a refusal is not asked for again");
    await type_admin_key(page, admin_key);
    await known(page).waitFor();
    await press(page, "Sleep", "chat").click();
    await page.waitForTimeout(200);
    const sleep = server.asked.find(({ method }) => method === "POST");
    assert.equal(sleep.bearer, admin_key);
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie, location.href]));
    assert.ok(!kept.includes(admin_key));
    assert.equal(await page.getByLabel("Admin key").inputValue(), "");
    await button(page, "Forget it").click();
    await press(page, "Sleep", "chat").waitFor({ state: "hidden" });
    await type_admin_key(page, admin_key);
    await known(page).waitFor();
    await page.reload();
    await connected(page);
    await page.getByLabel("Admin key").waitFor();
    assert.ok(await press(page, "Sleep", "chat").isHidden(), "a reload forgets the key");
  });

  test("a server that takes the right back is asked once more, and not again", async (t) => {
    const server = await full(t);
    const page = await visit(t, server);
    await press(page, "Sleep", "chat").waitFor();
    server.forbid = true;
    await press(page, "Sleep", "chat").waitFor({ state: "hidden", timeout: 6000 });
    const asked = server.asked.length;
    await page.waitForTimeout(4000);
    assert.equal(server.asked.length, asked);
    assert.equal(server.asked.at(-1).status, 403);
  });

  test("hostile names of models and devices are text", async (t) => {
    const names = ["<img src=x onerror=window.ran=1>", "../../v1/jobs?x=1#y", "\u202Etxet", "x".repeat(5000),
      'a"onclick="window.ran=1', "[data-order]"];
    const server = await full(t);
    server.admin = { models: names.map((name) => ({ ...figures, name, state: "ready", reason: name })),
      devices: [{ ...card, device: names[0] }] };
    const page = await visit(t, server, { viewport: sizes.phone });
    await unfold(page);
    await page.locator(".model-row").nth(names.length - 1).waitFor();
    const found = await page.evaluate(() => ({
      ran: window.ran,
      foreign: document.querySelectorAll("#device img, #device [onclick]").length,
      width: document.documentElement.scrollWidth,
      isolated: document.querySelectorAll(".model-row .who > bdi").length,
    }));
    assert.deepEqual(found, { ran: undefined, foreign: 0, width: sizes.phone.width, isolated: names.length });
    for (let i = 0; i < names.length; i++) await page.locator(".model-row [data-order=sleep]").nth(i).click();
    await page.waitForTimeout(300);
    const orders = server.asked.filter(({ method }) => method === "POST");
    assert.deepEqual(orders.map(({ name }) => name), names, "each order names its model, whatever that is");
  });

  test("thousands of models are a few rows, and a number", async (t) => {
    const server = await full(t);
    const many = Array.from({ length: 1500 }, (_, i) => ({ ...figures, name: `m${i}`, state: "absent" }));
    server.admin.models = [...many, { ...figures, name: "last", state: "ready" }];
    const page = await visit(t, server);
    await page.getByText("1,461 more are known.").waitFor();
    assert.equal(await page.locator(".model-row").count(), 40);
    assert.equal(await page.locator(".model-row .who").first().textContent(), "last");
  });

  for (const colorScheme of schemes)
    for (const [size, viewport] of Object.entries(sizes))
      test(`nothing serious is found, and nothing is too wide, ${colorScheme}, ${size}`, async (t) => {
        const server = await full(t);
        const cpu = { ...card, device: "cpu", total: 64 * gb, outside: 20 * gb, context: 0, free: 0,
          models: 43.1 * gb, weights: 40.1 * gb, workspaces: 0, runtime: 0, staging: 0,
          pages: { used: 0, cached: 1 * gb, free: 2 * gb } };
        server.admin.devices = [card, cpu];
        const page = await visit(t, server, { viewport, colorScheme });
        await unfold(page);
        await row(page, "chat").waitFor();
        await page.waitForTimeout(600);
        assert.deepEqual(await serious(page), []);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width);
        await page.locator("#device").scrollIntoViewIfNeeded();
        await shot(page, `inside-${colorScheme}-${size}`, { fullPage: true });
      });
});

describe("the inside of the real server", { skip: no_real }, () => {
  const sim = ["--device", "sim:rate=60,mb=100", "--sleep-mb", "1000"];

  /** A server of the model `sim` and of another one. `key`: of an admin, where the server has keys. */
  async function with_model(t, { name, source, key, args = [] }) {
    const server = await real(t, { args: [...sim, ...args] });
    const answer = await fetch(new URL("v1/admin/models", server.url), {
      method: "POST",
      headers: { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({ name, source }),
    });
    assert.equal(answer.status, 201);
    return server;
  }
  const big = { name: "big", source: "sim:rate=60,mb=300,sleep=50/2500" };
  const mib = 2 ** 20;
  const weights_are = (page, bytes) =>
    page.waitForFunction((n) => Number(document.querySelector(".strip .weights").dataset.bytes) === n, bytes);

  test("a model sleeps and wakes by the buttons while a stream of another goes on", async (t) => {
    const page = await visit(t, await with_model(t, big));
    await page.locator("#model option[value=big]").waitFor({ state: "attached" });
    await page.locator("#model").selectOption("sim");
    await set(page, { "Max tokens": "2000", "Show text": "live" });
    await view(page, "Complete");
    await send(page, "Once");
    await grows(page);
    await page.getByText(/tokens\/s · 1 running/).waitFor();
    await weights_are(page, 400 * mib);
    await press(page, "Sleep", "big").click();
    await row(page, "big").getByText("asleep, on the host").waitFor();
    await weights_are(page, 100 * mib);
    await grows(page);
    await press(page, "Wake", "big").click();
    await row(page, "big").getByText("waking", { exact: true }).waitFor();
    await shot(page, "inside-waking", { fullPage: true });
    await grows(page);
    await row(page, "big").getByText("ready", { exact: true }).waitFor();
    await weights_are(page, 400 * mib);
    await grows(page);
    assert.ok(await page.locator(".turn.writing").count(), "the stream is still written");
    await button(page, "Stop").click();
    assert.ok((await body(page).innerText()).length > 100);
  });

  test("a model is unloaded and loaded with progress, and the choice of models follows", async (t) => {
    const source = "sim:mb=200,load=2000,sleep=20/1500";
    const page = await visit(t, await with_model(t, { name: "slow", source }));
    await page.locator("#model").selectOption("slow");
    await press(page, "Sleep", "slow").click();
    await row(page, "slow").getByText(/^asleep/).waitFor();
    await press(page, "Wake", "slow").click();
    await row(page, "slow").getByText("waking", { exact: true }).waitFor();
    await row(page, "slow").getByText("ready", { exact: true }).waitFor();
    assert.equal(await page.locator("#model").inputValue(), "slow", "a wake changes no choice");
    await press(page, "Unload", "slow").click();
    await row(page, "slow").getByText("not loaded").waitFor();
    await page.locator("#model option[value=slow]").waitFor({ state: "detached" });
    await press(page, "Load", "slow").click();
    await row(page, "slow").getByText(/^loading/).waitFor();
    await row(page, "slow").getByText("ready", { exact: true }).waitFor();
    await page.locator("#model option[value=slow]").waitFor({ state: "attached" });
    await press(page, "Pinned", "slow").click();
    await row(page, "slow").locator(".facts", { hasText: "pinned" }).waitFor();
    await row(page, "slow").getByLabel("Share").fill("3");
    await row(page, "slow").getByLabel("Share").press("Enter");
    await row(page, "slow").getByText(/asks for 75 % of its device/).waitFor();
  });

  test("the strip of a cpu adds up to its memory, with pages in use", async (t) => {
    const args = ["--model", "tiny=random:tiny-110m", "--device", "cpu", "--kv-tokens", "4096"];
    const server = await real(t, { args });
    const page = await visit(t, server);
    await set(page, { "Max tokens": "400", "Show text": "live" });
    await view(page, "Complete");
    await send(page, "Once");
    await grows(page);
    await page.waitForFunction(() => Number(document.querySelector(".strip .used")?.dataset.bytes) > 0);
    const { bytes } = await parts_of(page, "cpu");
    const { devices } = await (await fetch(new URL("v1/admin/models", server.url))).json();
    assert.ok(devices[0].total > 0);
    assert.equal(sum(bytes), devices[0].total);
    assert.ok(bytes.weights > 1e8);
  });

  test("with keys: a key that is no admin's, and then the admin's", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "weir-admin-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "keys");
    writeFileSync(file, "plain-key-0123456789\nadmin-key-0123456789 admin\n");
    const key = "admin-key-0123456789";
    const server = await with_model(t, { ...big, key, args: ["--api-key-file", file] });
    const page = await open_page(t, server);
    await page.getByLabel("Key", { exact: true }).fill("plain-key-0123456789");
    await button(page, "Connect").click();
    await connected(page);
    await row(page, "big").waitFor(); // without buttons: /v1/stats shows the models that the key may use
    assert.ok(await press(page, "Sleep", "big").isHidden());
    await type_admin_key(page, "plain-key-0123456789");
    await page.getByText("This key is not the key of an admin.").waitFor();
    await type_admin_key(page, key);
    await known(page).waitFor();
    await press(page, "Sleep", "big").click();
    await row(page, "big").getByText("asleep, on the host").waitFor();
    await press(page, "Wake", "big").click();
    await row(page, "big").getByText("ready", { exact: true }).waitFor();
  });
});
