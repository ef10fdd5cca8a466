// Conversations: turns, history, edit, retry, stop, copy, plain completion, settings.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { answered, body, button, connected, fake, grows, looks, no_browser, no_real, real } from "./kit.js";
import { send, set, state, turns, view, visit } from "./kit.js";

const echo = ({ input }) => ({
  pieces: [{ delta: "You said " }, { delta: input.at(-1).content }],
  gap_ms: () => 5,
});
const created = (server) => server.received.filter(({ type }) => type === "response.create");
const said = (server, i) =>
  created(server)
    .at(i)
    .input.map(({ role, content }) => `${role}: ${content}`);

describe("the page's chat", { skip: no_browser }, () => {
  for (const [name, look] of Object.entries(looks))
    test(`five turns: each request has the whole conversation, ${name}`, async (t) => {
      const server = await fake(t, { plan: echo });
      const page = await visit(t, server, look);
      for (let i = 1; i <= 5; i++) {
        await send(page, `word ${i}`);
        await answered(page);
      }
      assert.equal(await turns(page, "user").count(), 5);
      assert.deepEqual(await turns(page, "assistant").locator(".body").allInnerTexts(), [
        "You said word 1",
        "You said word 2",
        "You said word 3",
        "You said word 4",
        "You said word 5",
      ]);
      assert.equal(said(server, -1).length, 9);
      assert.deepEqual(said(server, -1).slice(0, 3), [
        "user: word 1",
        "assistant: You said word 1",
        "user: word 2",
      ]);
    });

  test("a finished answer says when its first token came and how fast it was made", async (t) => {
    const page = await visit(t, await fake(t, { plan: echo }));
    await send(page, "hello");
    await answered(page);
    const words = "finished · 2 tokens · first after 42 ms · made at 200 tokens/s";
    assert.equal(await state(page).textContent(), words);
    await page.reload();
    await connected(page);
    await page.locator("#chats button").first().click();
    assert.equal(await state(page).textContent(), words, "it is kept");
  });

  test("an edited turn is sent again, and what followed it is gone", async (t) => {
    const server = await fake(t, { plan: echo });
    const page = await visit(t, server);
    for (const word of ["one", "two", "three"]) {
      await send(page, word);
      await answered(page);
    }
    await turns(page, "user").nth(1).getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Edit what you said").fill("deux");
    await button(page, "Send again").click();
    await body(page).getByText("You said deux").waitFor();
    await answered(page);
    assert.deepEqual(said(server, -1), ["user: one", "assistant: You said one", "user: deux"]);
    assert.equal(await turns(page, "user").count(), 2);
  });

  test("an edit that is left changes nothing", async (t) => {
    const server = await fake(t, { plan: echo });
    const page = await visit(t, server);
    await send(page, "one");
    await answered(page);
    await button(page, "Edit").click();
    await page.getByLabel("Edit what you said").fill("two");
    await button(page, "Leave as it is").click();
    assert.equal(await turns(page, "user").locator(".body").innerText(), "one");
    assert.equal(created(server).length, 1);
  });

  test("a retry asks the same again", async (t) => {
    let asked = 0;
    const plan = () => ({ pieces: [{ delta: `answer ${++asked}` }], gap_ms: () => 5 });
    const server = await fake(t, { plan });
    const page = await visit(t, server);
    await send(page, "one");
    await answered(page);
    await button(page, "Retry").click();
    await body(page).getByText("answer 2").waitFor();
    await answered(page);
    assert.deepEqual(said(server, 1), said(server, 0));
    assert.equal(await turns(page, "assistant").count(), 1);
  });

  test("conversations are kept over a reload, opened again, and deleted", async (t) => {
    const page = await visit(t, await fake(t, { plan: echo }));
    await send(page, "the first");
    await answered(page);
    await button(page, "New").click();
    await send(page, "the second");
    await answered(page);
    await page.reload();
    await connected(page);
    assert.equal(await page.locator("#chats li").count(), 2);
    await button(page, "the first").click();
    assert.equal(await body(page).innerText(), "You said the first");
    await button(page, "Delete: the first").click();
    assert.equal(await turns(page, "user").count(), 0);
    await page.reload();
    await connected(page);
    assert.deepEqual(await page.locator("#chats li button:first-child").allInnerTexts(), ["the second"]);
  });

  test("another conversation is opened in mid-answer: what was shown stays with the first", async (t) => {
    const page = await visit(t, await fake(t, { tokens_per_s: 100 }));
    await send(page, "the first");
    await grows(page);
    await button(page, "New").click();
    await send(page, "the second");
    await grows(page);
    await button(page, "Stop").click();
    await state(page)
      .getByText(/^stopped/)
      .waitFor();
    const second = await body(page).innerText();
    await button(page, "the first").click();
    assert.equal(await turns(page, "assistant").count(), 1);
    assert.equal(await state(page).textContent(), "stopped");
    const first = await body(page).innerText();
    assert.ok(first.length > 0);
    await button(page, "the second").click();
    assert.equal(await body(page).innerText(), second);
  });

  test("all conversations are deleted, with an answer under way", async (t) => {
    const page = await visit(t, await fake(t, { tokens_per_s: 100 }));
    await send(page, "hello");
    await grows(page);
    await button(page, "Settings").click();
    await button(page, "Delete all conversations").click();
    await button(page, "Done").click();
    assert.equal(await page.locator("#chats li").count(), 0);
    await page.reload();
    await connected(page);
    assert.equal(await page.locator("#chats li").count(), 0);
  });

  test("what is kept is bounded: fifty conversations, the oldest leave", async (t) => {
    const page = await visit(t, await fake(t));
    const titles = await page.evaluate(async () => {
      const { all_chats, keep_chat, new_chat, title_of } = await import("./history.js");
      for (let i = 0; i < 60; i++) {
        const chat = { ...new_chat("chat"), turns: [{ role: "user", text: `${i}` }] };
        keep_chat(chat);
        localStorage.setItem(`weir.chat.${chat.id}`, JSON.stringify({ ...chat, at: i }));
      }
      return all_chats().map(title_of);
    });
    assert.equal(titles.length, 50);
    assert.equal(titles[0], "59");
    assert.equal(titles.at(-1), "10");
  });

  test("settings reach the server by their wire names, and empty ones are left out", async (t) => {
    const server = await fake(t, { plan: echo });
    const page = await visit(t, server);
    const values = { "Max tokens": "5", Temperature: "", "Top k": "40", Seed: "100" };
    await set(page, {
      ...values,
      "Stop at, one a line": "\\n\\n\nEND",
      "System prompt of chats": "Be brief.",
    });
    await page.reload(); // settings stay
    await connected(page);
    await send(page, "hello");
    await answered(page);
    const { id, window, timing, ...request } = created(server)[0];
    assert.ok(window > 0);
    assert.equal(timing, true, "for the chart");
    assert.deepEqual(request, {
      type: "response.create",
      input: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hello" },
      ],
      model: "story-teller",
      reasoning: "separate",
      max_tokens: 5,
      top_k: 40,
      seed: 100,
      stop: ["\n\n", "END"],
    });
  });

  test("every further sampling field reaches the server, and the defaults send none of them", async (t) => {
    const server = await fake(t, { plan: echo, presets: ["story", "exact"] });
    const page = await visit(t, server);
    const numbers = [
      ["Repetition range", "repetition_range", 64],
      ["Repetition decay", "repetition_decay", 32],
      ["No repeated n-grams", "no_repeat_ngram_size", 4],
      ["DRY multiplier", "dry_multiplier", 0.8],
      ["DRY base", "dry_base", 1.5],
      ["DRY allowed length", "dry_allowed_length", 3],
      ["DRY range", "dry_range", 512],
      ["Top n sigma", "top_n_sigma", 1.5],
      ["Dynamic range", "dynatemp_range", 0.5],
      ["Dynamic exponent", "dynatemp_exponent", 2],
      ["Smoothing factor", "smoothing_factor", 0.2],
      ["Smoothing curve", "smoothing_curve", 1.5],
      ["Top a", "top_a", 0.1],
      ["Typical p", "typical_p", 0.9],
      ["Tail free", "tfs", 0.95],
      ["Mirostat mode", "mirostat_mode", 2],
      ["Mirostat tau", "mirostat_tau", 4],
      ["Mirostat eta", "mirostat_eta", 0.2],
      ["XTC probability", "xtc_probability", 0.5],
      ["XTC threshold", "xtc_threshold", 0.2],
    ];
    await set(page, {
      ...Object.fromEntries(numbers.map(([label, , value]) => [label, String(value)])),
      Preset: "exact",
      "Cuts before temperature": "true",
      "Heal the prompt’s last token": "true",
      "When the context is full": "shift",
      "Texts that must not come": "As an AI",
      "DRY breakers": "\\n\nAlice:",
      "Words that must not come": "no\nnever",
      "Tokens that must not come": "5, 17",
      "Only these tokens": "1 2",
    });
    await send(page, "hello");
    await answered(page);
    const others = {
      preset: "exact",
      temperature_last: true,
      token_healing: true,
      context_overflow: "shift",
      banned_strings: ["As an AI"],
      dry_sequence_breakers: ["\n", "Alice:"],
      bad_words: ["no", "never"],
      disallow_tokens: [5, 17],
      allowed_token_ids: [1, 2],
    };
    const sent = created(server)[0];
    for (const [, name, value] of numbers) assert.equal(sent[name], value, name);
    for (const [name, value] of Object.entries(others)) assert.deepEqual(sent[name], value, name);
    await button(page, "Settings").click();
    await button(page, "Defaults").click();
    await button(page, "Done").click();
    await send(page, "again");
    await turns(page, "assistant").nth(1).waitFor();
    await answered(page);
    const names = [...numbers.map(([, name]) => name), ...Object.keys(others)];
    assert.deepEqual(names.filter((name) => name in created(server)[1]), []);
  });

  test("markdown is a document: headings, lists, tables, and code that can be copied", async (t) => {
    const text =
      "# Title\n\nSome **bold** text.\n\n- a\n- b\n\n" +
      "| x | y |\n|---|---|\n| 1 | 2 |\n\n```js\nlet a;\n```\n\nend";
    const pieces = [...text].map((delta) => ({ delta }));
    const look = { permissions: ["clipboard-read", "clipboard-write"] };
    const page = await visit(t, await fake(t, { plan: () => ({ pieces, gap_ms: () => 1 }) }), look);
    await set(page, { "Show text": "live" });
    await send(page, "hello");
    await answered(page);
    for (const one of ["h1", "strong", "li", "td", "pre code.language-js"])
      assert.ok((await body(page).locator(one).count()) > 0, one);
    await button(page, "Copy this code").click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "let a;\n");
    await turns(page, "assistant").getByRole("button", { name: "Copy", exact: true }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  });

  test("a plain completion is sent as text, and goes on from its end", async (t) => {
    const plan = ({ input }) => ({ pieces: [{ delta: ` <${input.length}>` }], gap_ms: () => 5 });
    const server = await fake(t, { plan });
    const page = await visit(t, server);
    await view(page, "Complete");
    await send(page, "Once");
    await answered(page);
    await button(page, "Go on").click();
    await body(page).getByText("<4> <8>").waitFor();
    assert.deepEqual(
      created(server).map(({ input }) => input),
      ["Once", "Once <4>"],
    );
  });

  test("the keyboard alone: send, stop, look back, settings, another view", async (t) => {
    const page = await visit(t, await fake(t, { tokens_per_s: 100 }));
    const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
    const tab_to = async (name) => {
      for (let i = 0; i < 40 && (await focus()) !== name; i++) await page.keyboard.press("Tab");
      assert.equal(await focus(), name);
    };
    await tab_to("prompt");
    await page.keyboard.type("line one");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("line two");
    await page.keyboard.press("Enter");
    await grows(page);
    assert.equal(await turns(page, "user").locator(".body").innerText(), "line one\nline two");
    await page.keyboard.press("Escape");
    await state(page)
      .getByText(/^stopped/)
      .waitFor();
    await tab_to("Retry");
    await page.keyboard.press("Enter");
    await grows(page);
    await page.keyboard.press("Escape");
    await tab_to("open-settings");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("Shift+Tab");
    for (let i = 0; i < 3 && !(await page.locator("#views :focus").count()); i++)
      await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.ok(await page.getByLabel("Streams side by side").isVisible());
  });
});

describe("the page's chat, on the real server", { skip: no_real }, () => {
  test("five turns, an edit, a retry, a stop", async (t) => {
    const page = await visit(t, await real(t));
    await set(page, { "Max tokens": "12", "Show text": "live" });
    for (let i = 1; i <= 5; i++) {
      await send(page, `word ${i}`);
      await answered(page);
      await state(page)
        .getByText(/^reached its limit of 12 tokens · 12 tokens/)
        .waitFor();
    }
    await turns(page, "user").nth(3).getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Edit what you said").fill("another word");
    await button(page, "Send again").click();
    await answered(page);
    assert.equal(await turns(page, "assistant").count(), 4);
    await set(page, { "Max tokens": "4000" });
    await turns(page, "assistant").last().getByRole("button", { name: "Retry" }).click();
    await grows(page);
    await button(page, "Stop").click();
    await state(page)
      .getByText(/^stopped/)
      .waitFor();
    const before = await body(page).innerText();
    await page.waitForTimeout(300);
    assert.equal(await body(page).innerText(), before);
  });
});
