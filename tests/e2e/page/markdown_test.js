// Where a growing text may be cut into blocks: rendered piece by piece, it equals the text rendered at once.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fake, no_browser, visit } from "./kit.js";
import { seeded } from "../bursts.js";

const blocks = [
  "A paragraph\nof two lines.",
  "# A heading",
  "- one\n- two\n\n  in two\n- three",
  "1. one\n2. two",
  "```js\nlet a = 1;\n\nlet b = 2;\n```",
  "~~~\nno ``` end\n\n~~~",
  "> quoted\n\n> again",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  "    indented\n\n    code",
  "---",
  "`code` and *more*",
];

describe("markdown", { skip: no_browser }, () => {
  test("a growing text becomes the document that the whole text becomes", async (t) => {
    const page = await visit(t, await fake(t));
    const random = seeded(7);
    for (let round = 0; round < 40; round++) {
      const chosen = Array.from({ length: 6 }, () => blocks[Math.floor(random() * blocks.length)]);
      const text = chosen.join("\n\n") + "\n\nThe end of it all.";
      const steps = Array.from({ length: 12 }, () => Math.floor(random() * text.length)).sort(
        (a, b) => a - b,
      );
      const [grown, whole] = await page.evaluate(
        async ([text, steps]) => {
          const { Prose } = await import("./markdown.js");
          const render = (cuts) => {
            const element = document.createElement("div");
            const prose = new Prose(element);
            for (const cut of cuts) prose.show(text.slice(0, cut));
            return element.innerHTML.replace('<div class="tail">', "").replace(/<\/div>$/, "");
          };
          return [render([...steps, text.length]), render([text.length])];
        },
        [text, steps],
      );
      assert.equal(grown, whole, text);
    }
  });
});
