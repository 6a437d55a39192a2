// The console in a real browser. Argument: a JSON object with `link` (opens the console), `chromium`, `profile` and
// `screenshots` (directories). Reads orders from standard input, one JSON object a line, and answers each with one.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";

// Installed beside the Node that runs this, not beside this file.
const require = createRequire(path.join(path.dirname(process.execPath), "..", "..", "package.json"));
const { chromium } = require("playwright-core");
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

const given = JSON.parse(process.argv[2]);
const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const context = await chromium.launchPersistentContext(given.profile, {
  executablePath: given.chromium, args: flags, acceptDownloads: true,
});
context.setDefaultTimeout(60_000);
const page = context.pages()[0] ?? (await context.newPage());
const troubles = [];
page.on("dialog", (dialog) => { troubles.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
page.on("console", (message) => message.type() === "error" && troubles.push(`console: ${message.text()}`));
const origin = new URL(given.link).origin;
page.on("request", (request) => new URL(request.url()).origin === origin || troubles.push(`asks ${request.url()}`));

// Rules broken in a way that keeps people out, in this page.
async function accessible() {
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  const serious = found.violations.filter((rule) => ["serious", "critical"].includes(rule.impact));
  return serious.map((rule) => `${page.url()} ${rule.id}: ${rule.nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
}

const orders = {
  // Logs in, by whatever way the server offers.
  async open() {
    await page.goto(given.link);
    const button = page.getByRole("button", { name: "Open the console" });
    if (await button.count()) await button.click();
    await page.getByRole("heading", { name: "Now" }).waitFor();
  },
  // Waits for an operation to come up in the page that is open, without loading it again.
  async appears({ text }) {
    await page.getByRole("link", { name: text }).waitFor();
  },
  async follow({ text }) {
    await page.getByRole("link", { name: text }).click();
    await page.getByRole("log").waitFor();
  },
  // Percent, newest line and number of findings as the page shows them now.
  async look() {
    return await page.evaluate(() => ({
      percent: document.querySelector("#summary progress")?.value ?? null,
      line: document.querySelector("#output > div:last-child")?.textContent ?? null,
      findings: document.querySelectorAll("#findings tbody tr").length,
      state: document.querySelector("#summary .state")?.textContent ?? null,
      loads: performance.getEntriesByType("navigation").length,
      since: performance.timeOrigin,
    }));
  },
  // Waits until the page shows this, by itself.
  async until({ expression }) {
    // Not by `waitForFunction`: the page allows no code but its own.
    const deadline = Date.now() + 60_000;
    while (!(await page.evaluate(expression))) {
      if (Date.now() > deadline) throw new Error(`never came true: ${expression}`);
      await page.waitForTimeout(50);
    }
  },
  async cancel({ reason }) {
    await page.getByLabel("Reason").fill(reason);
    await page.getByRole("button", { name: "Cancel" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("#summary .state.cancelled").waitFor();
    return await page.locator("#summary").innerText();
  },
  // Puts the focus on a link, as the keyboard does on its way through the page.
  async focus({ text }) {
    await page.getByRole("link", { name: text }).focus();
  },
  // Presses a key in the output.
  async key({ key }) {
    await page.getByRole("log").focus();
    await page.keyboard.press(key);
  },
  async press({ button }) {
    await page.getByRole("button", { name: button, exact: true }).click();
  },
  // Goes to a link with the keyboard alone, from the top of the page. Every stop on the way has to be seen.
  async walk({ where, to }) {
    await page.goto(origin + where);
    for (let steps = 0; steps < 100; steps++) {
      await page.keyboard.press("Tab");
      const stop = await page.evaluate(() => {
        const at = document.activeElement;
        const { outlineStyle, outlineWidth } = getComputedStyle(at);
        return { name: at.textContent.trim(), tag: at.tagName, seen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
      });
      if (!stop.seen) throw new Error(`the focus is not seen at ${stop.tag} ${stop.name}`);
      if (stop.tag === "A" && stop.name === to) {
        await page.keyboard.press("Enter");
        await page.getByRole("log").waitFor();
        return steps;
      }
    }
    throw new Error(`never reached ${to}`);
  },
  async find({ text }) {
    await page.getByRole("link", { name: "History" }).click();
    await page.getByLabel("Text").fill(text);
    await page.getByLabel("Text").press("Enter");
    await page.waitForURL(/text=/);
    return await page.locator("tbody tr").allInnerTexts();
  },
  async download({ text, form }) {
    await page.getByRole("link", { name: text }).first().click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: form, exact: true }).click(),
    ]);
    return await readFile(await download.path(), "utf8");
  },
  // Looks at every page in light, dark and narrow.
  async tour({ paths }) {
    const found = [];
    for (const [name, scheme, width] of [["light", "light", 1280], ["dark", "dark", 1280], ["narrow", "light", 400]]) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      for (const [index, where] of paths.entries()) {
        await page.goto(origin + where);
        found.push(...(await accessible()).map((rule) => `${name} ${rule}`));
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (overflow > 0) found.push(`${name} ${where} is ${overflow} px too wide`);
        await page.screenshot({ path: path.join(given.screenshots, `${index}-${name}.png`) });
      }
    }
    return found;
  },
  async visit({ where }) {
    await page.goto(origin + where);
    return await page.evaluate(() => ({
      title: document.title,
      elements: document.querySelectorAll(".output script, .output img, .output svg, .output a, .output h1, .output b").length,
      text: document.querySelector(".output")?.innerText ?? "",
      headings: document.querySelectorAll("h1").length,
    }));
  },
  // The same without JavaScript: everything is there.
  async plain({ where }) {
    const state = await context.storageState();
    const browser = await chromium.launch({ executablePath: given.chromium, args: flags });
    const plain = await browser.newContext({ javaScriptEnabled: false, storageState: state });
    const other = await plain.newPage();
    await other.goto(origin + where);
    const text = await other.locator("main").innerText();
    await browser.close();
    return text;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { order, ...details } = JSON.parse(line);
  try {
    const result = await orders[order](details);
    console.log(JSON.stringify({ result: result ?? null, troubles: troubles.splice(0) }));
  } catch (error) {
    console.log(JSON.stringify({ failed: `${order}: ${error.message}\n${(await page.content()).slice(0, 4000)}` }));
  }
}
await context.close();
