// A model's text is foreign: whatever it says, nothing of it runs, and nothing of the page breaks.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  answered,
  body,
  card,
  fake,
  no_browser,
  run_streams,
  send,
  set,
  sizes,
  state,
  view,
  visit,
} from "./kit.js";

const say = (text) => ({ plan: () => ({ pieces: [{ delta: text }], gap_ms: () => 1 }) });
const long = "x".repeat(100_000);

/** Each of these would set `ran`, load something or leave a mark, if it were more than text. */
const attacks = {
  "a script": "<script>window.ran = 1</script>",
  "a handler":
    "<img src=x onerror=window.ran=1><svg onload=window.ran=1><details open ontoggle=window.ran=1>",
  "a frame":
    '<iframe srcdoc="<script>parent.ran=1</script>"></iframe><object data="x"></object><embed src="x">',
  "javascript: links": "[a](javascript:window.ran=1) <javascript:window.ran=1> [b](JaVaScRiPt:window.ran=1)",
  "hidden javascript: links":
    "[a](java&#115;cript:window.ran=1) [b](\tjavascript:window.ran=1) [c](&#x1;javascript:x)",
  "data: and vbscript: links":
    "[a](data:text/html,<script>1</script>) [b](vbscript:x) [c](file:///etc/passwd)",
  "a title that ends its quotes":
    `[a](http://h "x\\" onclick=window.ran=1 \\"") ` + `![b](http://h 'x" onerror="window.ran=1')`,
  "a language that ends its quotes": '```x"onclick="window.ran=1 class=top\ncode\n```',
  "a form and a style":
    '<form action="//h"><button>x</button></form><style>*{display:none}</style><base href="//h">',
  "math and templates":
    "<math><mtext><table><mglyph><style><img src=x onerror=window.ran=1></style></table></math>",
  "names of the page": '<p id="prompt" name="body" class="top">x</p>',
  "a remote picture": "![look](http://remote.example/pixel.png) and ![](https://remote.example/other.png)",
};

describe("hostile output", { skip: no_browser }, () => {
  for (const [name, text] of Object.entries(attacks))
    test(`${name}: nothing runs, nothing is loaded, links are tame`, async (t) => {
      const server = await fake(t, say(text + "\n\nthe end"));
      const page = await visit(t, server);
      const asked = [];
      page.on("request", (request) => asked.push(request.url()));
      await set(page, { "Show text": "live" });
      await send(page, "hello");
      await answered(page);
      await body(page).getByText("the end").waitFor();
      for (const link of await body(page).locator("a").all()) await link.dispatchEvent("mouseover");
      const found = await body(page).evaluate((element) => {
        const all = [...element.querySelectorAll("*")];
        return {
          ran: window.ran,
          tags: all.map((it) => it.localName),
          attributes: all.flatMap((it) => [...it.attributes].map(({ name }) => name)),
          links: [...element.querySelectorAll("a")].map(({ href, rel, target }) => ({ href, rel, target })),
        };
      });
      assert.equal(found.ran, undefined);
      const never = /^(script|img|svg|iframe|object|embed|form|style|base|math|input|details|link|meta)$/;
      assert.deepEqual(
        found.tags.filter((tag) => never.test(tag)),
        [],
      );
      assert.deepEqual(
        found.attributes.filter((one) => /^on|^style$|^id$|^name$|^src/.test(one)),
        [],
      );
      for (const { href, rel, target } of found.links) {
        assert.match(href, /^(https?|mailto):/);
        assert.match(rel, /noopener/);
        assert.equal(target, "_blank");
      }
      assert.deepEqual(
        asked.filter((url) => !url.startsWith(server.url)),
        [],
        "nothing is asked of others",
      );
    });

  test("a remote picture is a link with its words", async (t) => {
    const page = await visit(t, await fake(t, say(attacks["a remote picture"])));
    await send(page, "hello");
    await answered(page);
    const links = await body(page)
      .locator("a")
      .evaluateAll((all) => all.map((it) => [it.textContent, it.href]));
    assert.deepEqual(links, [
      ["look", "http://remote.example/pixel.png"],
      ["https://remote.example/other.png", "https://remote.example/other.png"],
    ]);
  });

  test("a user's own markup stays text, and so does a plain completion's", async (t) => {
    const page = await visit(t, await fake(t, say("<b>bold</b> **x**")));
    await view(page, "Complete");
    await send(page, "<i>typed</i>");
    await answered(page);
    assert.equal(await body(page).innerText(), "<b>bold</b> **x**");
    assert.equal(await page.locator(".turn b:not(.who), .turn i, .turn strong").count(), 0);
  });

  for (const [name, viewport] of Object.entries(sizes))
    test(`100,000 characters without a space leave the page as wide as it is, ${name}`, async (t) => {
      const page = await visit(t, await fake(t, say(long)), { viewport });
      await set(page, { "Show text": "live" });
      await send(page, "hello");
      await answered(page);
      assert.equal((await body(page).innerText()).length, long.length);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width);
      const { width } = await body(page).boundingBox();
      assert.ok(width < viewport.width);
      await run_streams(page, 2);
      await card(page, 2, "state").getByText("finished").waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width);
    });

  test("text that is nested too deeply, or costly to render, is shown as it is", async (t) => {
    for (const text of [
      "> ".repeat(20_000),
      "_a".repeat(50_000),
      "[".repeat(100_000),
      "a.".repeat(50_000) + "@",
    ]) {
      const page = await visit(t, await fake(t, say(text)));
      await set(page, { "Show text": "live" });
      await send(page, "hello");
      await answered(page);
      assert.equal((await body(page).textContent()).trim(), text.trim());
    }
  });
});

/** Names of models as whoever makes a model file may choose them; the same words serve for errors. */
const names = {
  "a handler": "<img src=x onerror=window.ran=1>",
  "the end of a script": "</script></select><script>window.ran=1</script>",
  "quotes and an entity": `x" onfocus="window.ran=1" autofocus x='&lt;b&gt;&quot;`,
  "text that is turned around": "\u202Eelif\u2066 \u202Dexe.\u200F",
  "control characters": "a\u0000b\u0007\u001b[31mc\u009b2J\r\nd\te",
  "100,000 characters": "m".repeat(100_000),
};

const marks = (page) =>
  page.evaluate(() => ({
    ran: window.ran,
    foreign: document.querySelectorAll("img[onerror], [onfocus], script:not([src]), iframe").length,
    width: document.documentElement.scrollWidth,
  }));

describe("hostile names and errors", { skip: no_browser }, () => {
  for (const [name, text] of Object.entries(names))
    for (const [size, viewport] of Object.entries(sizes))
      test(`${name} as a model's name is text, and is what the page asks for, ${size}`, async (t) => {
        const server = await fake(t, say("the end"));
        server.models = [text, "sim"];
        server.loading = { model: text, done: 1, total: 2 };
        const page = await visit(t, server, { viewport });
        await page.locator("#loading").waitFor();
        const words = await page.locator("#loading-words").textContent();
        assert.match(words, /^The model /);
        assert.match(words, /is loading: 50 %/);
        const isolated = page.locator("#loading-words bdi");
        assert.ok((await isolated.textContent()).length <= 101);
        assert.ok(text.startsWith((await isolated.textContent()).replace("…", "")));
        await send(page, "hello");
        await answered(page);
        const asked = server.received.find((frame) => frame.type === "response.create");
        assert.equal(asked.model, text);
        const { width } = viewport;
        assert.deepEqual(await marks(page), { ran: undefined, foreign: 0, width });
      });

  for (const [name, text] of Object.entries(names))
    test(`${name} in errors and endings is text`, async (t) => {
      const plans = [
        { refuse: { code: "overloaded", message: text } },
        { refuse: { code: text, message: text, param: text } },
        { pieces: [{ delta: "x" }], gap_ms: () => 1, finish_reason: text },
      ];
      const server = await fake(t, { plan: () => plans.shift() });
      const page = await visit(t, server);
      for (let left = plans.length; left > 0; left--) {
        await send(page, "hello");
        await answered(page);
        await state(page).waitFor();
      }
      assert.equal(plans.length, 0);
      assert.deepEqual(await marks(page), { ran: undefined, foreign: 0, width: sizes.wide.width });
    });
});
