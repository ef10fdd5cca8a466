// The page in Chromium: against the scripted server always, and by the same words against the binary that
// WEIR_BIN names. SHOTS names a folder for pictures. Without Chromium (CHROMIUM, /usr/bin/chromium) or the
// binary a part is skipped with the reason; where CI is true, that is a failure.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { chromium } from "playwright-core";
import { bursty, watch_paint } from "./bursts.js";
import { start_fake, story } from "./fake_server.js";
import { start_real } from "./real_server.js";

const browser_path = process.env.CHROMIUM ?? "/usr/bin/chromium";
const required = process.env.CI === "true";

/** A reason to skip, or false; with CI=true the test runs, and fails for the same reason. */
function unless(there, reason) {
  return there || required ? false : reason;
}

const no_browser = unless(existsSync(browser_path), `${browser_path} is not there`);
const no_binary = unless(process.env.WEIR_BIN, "WEIR_BIN does not name a binary");
let browser;

before(async () => {
  if (no_browser) return;
  browser = await chromium.launch({
    executablePath: browser_path,
    args: ["--no-sandbox", "--disable-background-networking"],
  });
});
after(() => browser?.close());

/** Opens the page; what it complains about, other than a server that is gone, fails the test. */
async function visit(t, server, look = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...look });
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/ERR_CONNECTION_|WebSocket connection/.test(message.text()))
      complaints.push(message.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, []);
  });
  await page.goto(server.url);
  await page.getByText("connected", { exact: true }).waitFor();
  return page;
}

const part = (page, slot, name) => page.locator(`.card[data-slot="${slot}"] .${name}`);
const made = (page, slot = 1) => part(page, slot, "made");
const card_state = (page, slot = 1) => part(page, slot, "state");
const count_of = async (page, slot = 1) => Number(await part(page, slot, "tokens").textContent());

async function grows(page, slot = 1) {
  const before = (await made(page, slot).textContent()).length;
  await page.waitForFunction(
    ([slot, before]) =>
      document.querySelector(`.card[data-slot="${slot}"] .made`).textContent.length > before,
    [slot, before],
  );
}

async function rests(page, slot = 1) {
  const before = await made(page, slot).textContent();
  await page.waitForTimeout(300);
  assert.equal(await made(page, slot).textContent(), before);
}

async function ask(page, prompt, { streams = 1, max_tokens = 4000 } = {}) {
  await page.getByLabel("Prompt", { exact: true }).fill(prompt);
  await page.getByLabel("Streams", { exact: true }).fill(String(streams));
  await page.locator("#settings").evaluate((details) => (details.open = true));
  await page.getByLabel("Max tokens").fill(String(max_tokens));
}

const button = (page, name) => page.getByRole("button", { name });

/** What any weir server must do for the page. */
function page_spec(start) {
  let server;
  before(async () => (server = await start({})));
  after(() => server?.stop());

  test("a prompt is typed, text grows, Stop stops it", async (t) => {
    const page = await visit(t, server);
    await ask(page, "Once upon a time");
    await button(page, /^Run/).click();
    await grows(page);
    await grows(page);
    assert.equal(await card_state(page).textContent(), "writing");
    await button(page, /^Stop Esc/).click();
    await page.getByText("stopped", { exact: true }).waitFor();
    await rests(page);
    assert.ok((await count_of(page)) > 0);
    assert.ok(await button(page, /^Stop Esc/).isDisabled());
  });

  test("Ctrl+Enter runs, Escape stops", async (t) => {
    const page = await visit(t, server);
    await ask(page, "Once upon a time");
    await page.getByLabel("Prompt", { exact: true }).press("Control+Enter");
    await grows(page);
    await page.keyboard.press("Escape");
    await page.getByText("stopped", { exact: true }).waitFor();
  });

  test("four streams write side by side, each its own text, and each stops alone", async (t) => {
    const page = await visit(t, server);
    await ask(page, "Once upon a time", { streams: 4 });
    await button(page, /^Run/).click();
    for (const slot of [1, 2, 3, 4]) await grows(page, slot);
    await page.getByRole("button", { name: "Stop stream 2" }).click();
    await page.locator('.card[data-slot="2"][data-state=cancelled]').waitFor();
    await grows(page, 1);
    await grows(page, 4);
    const texts = await page.locator(".made").allTextContents();
    assert.equal(new Set(texts.map((text) => text.slice(0, 12))).size, 4, "four seeds, four texts");
    await page.getByLabel("Prompt", { exact: true }).fill("Another beginning");
    await button(page, "Add beside").click();
    await grows(page, 5);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelectorAll("[data-state=cancelled]").length === 5);
  });

  test("the server's batch and pages are seen while it writes", async (t) => {
    const page = await visit(t, server);
    assert.ok(!(await page.locator("#device").isVisible()));
    await ask(page, "Once upon a time", { streams: 4 });
    await button(page, /^Run/).click();
    await page.getByText(/^4 writing/).waitFor();
    assert.equal(await page.locator("#sequences [data-state=decoding]").count(), 4);
    const words = await page.locator("#pages-words").textContent();
    assert.match(words, /^[1-9][\d,]* in use · [\d,]+ kept .* free$/);
    const grows = (bar) => bar.offsetWidth > 0 || +bar.style.flexGrow > 0;
    assert.ok(await page.locator("#pages-used").evaluate(grows));
    assert.match(await page.locator("#device-step").textContent(), /^[\d.]+ ms$/);
  });

  test("a stream that reaches its limit says so, and the same seed tells the same text again", async (t) => {
    const page = await visit(t, server);
    await ask(page, "Once upon a time", { max_tokens: 12 });
    await page.getByLabel("Seed").fill("42");
    const texts = [];
    for (let i = 0; i < 2; i++) {
      await button(page, /^Run/).click();
      await page.getByText("reached its limit of 12 tokens", { exact: true }).waitFor();
      texts.push(await made(page).textContent());
    }
    assert.ok(texts[0].length > 0);
    assert.equal(texts[0], texts[1]);
    assert.equal(await count_of(page), 12);
  });

  test("the chart is drawn, and its numbers are real", async (t) => {
    const page = await visit(t, server);
    await ask(page, "Once upon a time");
    await button(page, /^Run/).click();
    await page.waitForFunction(() => parseFloat(document.getElementById("gap-median").textContent) > 0);
    const colours = await page.locator("#chart").evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
    assert.ok(colours > 3, `${colours} colours`);
  });

  test("text shown evenly is the same text, to its end", async (t) => {
    const page = await visit(t, server);
    await ask(page, "Once upon a time", { max_tokens: 40 });
    await page.getByLabel("Seed").fill("7");
    const texts = [];
    for (const pace of ["live", "even"]) {
      await page.getByLabel("Show tokens").selectOption(pace);
      await button(page, /^Run/).click();
      await page.getByText("reached its limit of 40 tokens", { exact: true }).waitFor();
      texts.push(await made(page).textContent());
    }
    assert.equal(texts[0], texts[1]);
  });

  test("a server that is gone is said in plain words; the page reconnects when it is back", async (t) => {
    const page = await visit(t, server);
    await ask(page, "Once upon a time");
    await button(page, /^Run/).click();
    await grows(page);
    await server.stop();
    await card_state(page).getByText("connection lost: going on as soon as it is back").waitFor();
    await page.getByText(/The server is not answering\. Trying again in \d+ s…/).waitFor();
    await shot(page, "gone");
    await button(page, /^Run/).click();
    await card_state(page).getByText("The server is not answering.").waitFor();
    server = await start({ port: server.port });
    await page.getByText("connected", { exact: true }).waitFor();
    assert.ok(await page.locator("#notice").isHidden());
    await button(page, /^Run/).click();
    await grows(page);
  });
}

async function shot(page, name, how) {
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, name + ".png"), ...how });
}

describe("the page, on a scripted server", { skip: no_browser }, () => {
  page_spec(start_fake);

  const fake = async (t, options) => {
    const server = await start_fake(options);
    t.after(() => server.stop());
    return server;
  };

  test("a refusal is said on the card, with what to do", async (t) => {
    const refuse = { code: "rate_limited", message: "rate limit", retry_after_ms: 1500 };
    const page = await visit(t, await fake(t, { plan: () => ({ refuse }) }));
    await ask(page, "hello");
    await button(page, /^Run/).click();
    await card_state(page).getByText("The server has too much to do right now. Try again in 2 s.").waitFor();
  });

  test("an error of the request is said in the server's words", async (t) => {
    const refuse = {
      code: "invalid_param",
      param: "input",
      message: "input: this model has no chat template",
    };
    const page = await visit(t, await fake(t, { plan: () => ({ refuse }) }));
    await button(page, "A sum").click();
    await button(page, /^Run/).click();
    await card_state(page).getByText(refuse.message).waitFor();
  });

  test("wrong text is never shown: a gap ends the stream", async (t) => {
    const pieces = [{ delta: "right " }, { delta: "WRONG", seq: 9 }];
    const page = await visit(t, await fake(t, { plan: () => ({ pieces, gap_ms: () => 5 }) }));
    await ask(page, "hello");
    await button(page, /^Run/).click();
    await card_state(page)
      .getByText(/Tokens 2 to 8 never arrived/)
      .waitFor();
    assert.equal(await made(page).textContent(), "right ");
  });

  test("the network is cut: the text goes on without a seam", async (t) => {
    const server = await fake(t, { tokens_per_s: 100 });
    const page = await visit(t, server);
    await ask(page, "Once upon a time", { max_tokens: 200 });
    await page.getByLabel("Seed").fill("3");
    await button(page, /^Run/).click();
    for (let cut = 0; cut < 2; cut++) {
      await grows(page);
      server.drop();
      await card_state(page).getByText("connection lost: going on as soon as it is back").waitFor();
      await card_state(page).getByText("writing").waitFor();
    }
    await shot(page, "resumed");
    await page.getByText("reached its limit of 200 tokens", { exact: true }).waitFor();
    const { pieces } = story({ seed: 3, max_tokens: 200 }, 0);
    assert.equal(await made(page).textContent(), pieces.map(({ delta }) => delta).join(""));
  });

  test("a bursty source that is played is painted in order, every token once", async (t) => {
    const arrivals = bursty(1, 200);
    const gap_ms = (i) => (i === 0 ? 0 : arrivals[i] - arrivals[i - 1]);
    const pieces = arrivals.map((_, i) => ({ delta: `${i} ` }));
    const server = await fake(t, { plan: () => ({ pieces, gap_ms }) });
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(server.url + "style.css"); // a page of the same origin
    const { seen, text } = await page.evaluate(watch_paint);
    assert.equal(text, pieces.map(({ delta }) => delta).join(""));
    assert.ok(seen.every(({ at, shown, painted }) => at <= shown && shown <= painted));
  });

  test("markup in a model's text stays text", async (t) => {
    const pieces = [{ delta: "<img src=x onerror=alert(1)><b>" }];
    const page = await visit(t, await fake(t, { plan: () => ({ pieces, gap_ms: () => 5 }) }));
    await ask(page, "hello");
    await button(page, /^Run/).click();
    await page.getByText("finished", { exact: true }).waitFor();
    assert.equal(await made(page).textContent(), pieces[0].delta);
    assert.equal(await page.locator(".made img, .made b").count(), 0);
  });

  test("settings reach the server by their wire names, and empty ones are left out", async (t) => {
    const server = await fake(t);
    const page = await visit(t, server);
    await ask(page, "line one", { streams: 2, max_tokens: 5 });
    await page.getByLabel("Temperature").fill("");
    await page.getByLabel("Top k").fill("40");
    await page.getByLabel("Seed").fill("100");
    await page.getByLabel("Stop at, one a line").fill("\\n\\n\nEND");
    await button(page, /^Run/).click();
    await page.locator('.card[data-slot="2"][data-state=incomplete]').waitFor();
    const [first, second] = server.received.filter(({ type }) => type === "response.create");
    const { id, ...request } = first;
    assert.deepEqual(request, {
      type: "response.create",
      input: "line one",
      model: "story-teller",
      max_tokens: 5,
      top_k: 40,
      seed: 100,
      stop: ["\n\n", "END"],
    });
    assert.equal(second.seed, 101);
  });

  test("a server that asks for a key gets one", async (t) => {
    const server = await fake(t, { key: "open sesame" });
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(server.url);
    await page.getByText("The server asks for a key.").waitFor();
    await page.getByLabel("Key", { exact: true }).fill("open barley");
    await button(page, "Connect").click();
    await page.getByText("The server does not accept this key.").waitFor();
    await page.getByLabel("Key", { exact: true }).fill("open sesame");
    await button(page, "Connect").click();
    await page.getByText("connected", { exact: true }).waitFor();
  });

  test("every control has a name, and the page fits a phone", async (t) => {
    const page = await visit(t, await fake(t), { viewport: { width: 360, height: 740 } });
    await ask(page, "hello", { streams: 8, max_tokens: 30 });
    await button(page, /^Run/).click();
    await grows(page, 8);
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("input, select, textarea, button")]
        .filter((it) => !(it.labels?.length || it.textContent.trim() || it.ariaLabel))
        .map((it) => it.outerHTML),
    );
    assert.deepEqual(nameless, []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  });

  const sizes = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
  const no_shots = !process.env.SHOTS && "SHOTS names no folder";
  for (const colorScheme of ["light", "dark"])
    for (const [name, viewport] of Object.entries(sizes))
      test(`pictures, ${colorScheme}, ${name}`, { skip: no_shots }, async (t) => {
        const server = await fake(t, { plan: uneven });
        const page = await visit(t, server, { viewport, colorScheme });
        await shot(page, `${colorScheme}-${name}-empty`);
        await button(page, "A story").click();
        await button(page, /^Run/).click();
        await page.waitForTimeout(4000);
        await shot(page, `${colorScheme}-${name}-one`);
        await page.getByLabel("Streams", { exact: true }).fill(name === "wide" ? "6" : "3");
        await button(page, /^Run/).click();
        await page.waitForTimeout(5500);
        await page.getByRole("button", { name: "Stop stream 2" }).click();
        await shot(page, `${colorScheme}-${name}-many`);
        await page.locator("#settings").evaluate((details) => (details.open = true));
        await shot(page, `${colorScheme}-${name}-full`, { fullPage: true });
      });
});

/** A story at about 40 tokens a second, with the jitter of a real machine and a stall now and then. */
function uneven(request) {
  return { ...story(request), gap_ms: (i) => (i % 90 === 89 ? 85 : 22 + Math.random() * 6) };
}

describe("the page, on the real server", { skip: no_browser || no_binary }, () => {
  page_spec(start_real);
});
