// Every button of the page, hovered and pressed: its label can be read, and it stays within reach.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { answered, button, fake, no_browser, run_streams, schemes, seen, send, shot, sizes } from "./kit.js";
import { unfold, view, visit } from "./kit.js";

const least_contrast = 4.5; // WCAG 2.2, 1.4.3

/** In the page: the contrast of an element's text with what is behind it, as it is drawn now. */
function contrast_of(element) {
  const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      const part = v / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  let behind = element;
  const ground = () => parts(getComputedStyle(behind).backgroundColor);
  while (behind.parentElement && ground()[3] === 0) behind = behind.parentElement;
  const [light, dark] = [luminance(parts(getComputedStyle(element).color)), luminance(ground())].sort(
    (a, b) => b - a,
  );
  return (light + 0.05) / (dark + 0.05);
}

/** Hovers every button that can be seen. `within`: what can be reached. */
async function all_are_legible(page, where, within = "body") {
  for (const one of await page.locator(within).locator("button:visible:enabled").all()) {
    const name = await one.evaluate((it) => it.getAttribute("aria-label") ?? it.textContent);
    await one.hover();
    const contrast = await one.evaluate(contrast_of);
    assert.ok(contrast >= least_contrast, `${where}: «${name}» has a contrast of ${contrast.toFixed(2)}`);
  }
}

describe("the page's buttons", { skip: no_browser }, () => {
  for (const colorScheme of schemes)
    for (const [size, viewport] of Object.entries(sizes))
      test(`hovered and pressed, each has a label that can be read, ${colorScheme}, ${size}`, async (t) => {
        const page = await visit(t, await fake(t, { tokens_per_s: 1000 }), { viewport, colorScheme });
        await unfold(page);
        await all_are_legible(page, "at the start");
        await send(page, "hello");
        await answered(page);
        for (const name of ["Read slowly", "Bursty network"]) {
          await button(page, name).click();
          assert.equal(await button(page, name).getAttribute("aria-pressed"), "true");
        }
        await all_are_legible(page, "with two buttons pressed");
        await shot(page, `pressed-${colorScheme}-${size}`);
        for (const name of ["Read slowly", "Bursty network"]) await button(page, name).click();
        await button(page, "Edit").click();
        await all_are_legible(page, "while a turn is edited");
        await view(page, "Complete");
        await all_are_legible(page, "in Complete");
        await run_streams(page, 3);
        await all_are_legible(page, "side by side");
        await button(page, "Settings").click();
        await all_are_legible(page, "in Settings", "#settings");
      });

  test("on a phone the buttons of the settings are in sight, wherever the fields are scrolled", async (t) => {
    const page = await visit(t, await fake(t), { viewport: sizes.phone });
    await button(page, "Settings").click();
    for (const place of ["start", "end"]) {
      await page.locator("#settings").evaluate((it, at) => it.scrollTo(0, at === "end" ? 1e6 : 0), place);
      for (const name of ["Delete all conversations", "Defaults", "Done"])
        assert.ok(await seen(button(page, name)), `${name}, scrolled to the ${place}`);
      const below = await page.evaluate(() => {
        const { right, bottom } = document.querySelector("#settings .actions").getBoundingClientRect();
        const dialog = document.getElementById("settings").getBoundingClientRect();
        return { bottom: dialog.bottom - bottom, right: dialog.right - right };
      });
      assert.ok(below.bottom >= 0 && below.right >= 0, JSON.stringify(below));
    }
  });

  test("panels that were opened on a phone are open after a reload, and the others are not", async (t) => {
    const page = await visit(t, await fake(t), { viewport: sizes.phone });
    const open = () =>
      page.locator(".panel").evaluateAll((all) => all.filter((it) => it.open).map(({ id }) => id));
    assert.deepEqual(await open(), []);
    await page.locator("#gaps summary").click();
    await page.locator("#demo summary").click();
    await button(page, "Reload the page").click();
    await page.waitForFunction(() => performance.getEntriesByType("navigation")[0].type === "reload");
    await page.getByText("connected", { exact: true }).waitFor();
    assert.deepEqual(await open(), ["demo", "gaps"]);
  });
});
