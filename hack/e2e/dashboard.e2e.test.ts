import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WorkspacePhase } from "@forage/proto/core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { findAccessFaults, startBrowser } from "../lib/browser.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { webManifest } from "../system/manifests.ts";
import { type System, startSystem } from "../system/system.ts";
import { WorkspaceCalls } from "../system/workspaces.ts";

const LIMIT = { timeout: 180_000 };
/** Named: pictures of the pages are kept there. `FORAGE_PICTURES=docs/pictures hack/test hack/e2e/dashboard` makes those of the docs. */
const PICTURES = process.env.FORAGE_PICTURES;
const CANARY = "hunter2-canary";
const SERVE = "echo line one; echo the second line; exec httpd -f -p 8080 -h /tmp";

describe("the dashboard in a browser, over real pods", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  /** A second window, which shows a pod while the other one goes on. */
  let window: Page;
  let token: string;
  const complaints: string[] = [];

  before(async () => {
    const starting = startBrowser();
    host = await startTestHost();
    system = await startSystem(host, {
      agent: { workspaces: { enabled: true } },
      coordinator: {
        // Nodes measure their pods as often.
        autoscaling: { intervalSeconds: 1 },
        workspaces: {
          enabled: true,
          classes: [{ id: "small", cpu: "10m", memory: "32Mi" }],
          command: ["sh", "-c", 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'],
        },
      },
    });
    browser = await starting;
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    context.setDefaultTimeout(60_000);
    page = await context.newPage();
    context.on("weberror", (thrown) => complaints.push(thrown.error().message));
    context.on("console", (message) => {
      // Chromium ends requests when pods change the host's network interfaces, and the page sends them again.
      if (message.text().includes("net::ERR_NETWORK_CHANGED")) return;
      if (message.type() === "error" && !message.text().includes("401")) complaints.push(message.text());
    });
    token = readFileSync(system.tokenFile, "utf8").trim();
  }, LIMIT);
  after(async () => {
    await browser?.close();
    await host?.close();
  }, LIMIT);

  /** Forgets the browser's line about an answer that the test has caused. */
  function allowed(status: string): void {
    const at = complaints.findIndex((text) => text.includes(`status of ${status}`));
    assert.notEqual(at, -1);
    complaints.splice(at, 1);
  }

  async function apply(manifest: string): Promise<void> {
    const { exitCode, stderr } = await system.forageInProcess(["apply", "--detach", "-f", "-"], manifest);
    assert.equal(exitCode, 0, stderr);
  }

  /** Goes to a page whose title is the heading, and checks that everyone can use it. */
  async function visit(address: string, heading: string): Promise<void> {
    await page.evaluate(`location.hash = ${JSON.stringify(`#/${address}`)}`);
    await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
  }

  async function checked(name: string, shown = page): Promise<void> {
    if (PICTURES !== undefined) {
      mkdirSync(PICTURES, { recursive: true });
      await shown.screenshot({ path: join(PICTURES, `dashboard-${name}.png`) });
    }
    assert.deepEqual(await findAccessFaults(shown), [], name);
  }

  test("a token opens it, and what is deployed appears without a reload", LIMIT, async () => {
    await page.goto(`http://${system.http}/`);
    await page.getByLabel("API token").fill("flt_wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("alert").waitFor();
    await checked("login");
    await page.getByLabel("API token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: "n1", exact: true }).waitFor();
    await page.getByRole("link", { name: "Pods", exact: true }).click();
    await page.getByText("No pod matches").waitFor();
    await apply(webManifest({ image: host.image, replicas: 2, command: ["sh", "-c", SERVE] }));
    await page.getByText("2 pods · 2 ready").waitFor();
    await checked("pods");
    const pod = await page.getByRole("link", { name: /^web-/ }).first().getAttribute("href");
    window = await context.newPage();
    await window.goto(new URL(pod ?? "", page.url()).href);
    await visit("fleet", "Fleet");
    await checked("fleet");
  });

  test("a pod shows why it fails, its log as it is written, and a terminal", LIMIT, async () => {
    await apply(
      webManifest({
        name: "broken",
        image: host.image,
        replicas: 1,
        command: ["sh", "-c", "echo no beans; exit 3"],
      }),
    );
    await visit("workloads", "Workloads");
    await page.getByRole("link", { name: "broken" }).click();
    await page.getByRole("region", { name: "Why" }).getByText("no beans").first().waitFor();
    await checked("workload");
    await visit("pods", "Pods");
    await page.getByRole("searchbox").fill("web");
    await page.getByText("2 pods · 2 ready").waitFor();
    await page.getByRole("link", { name: /^web-/ }).first().click();
    await page.getByRole("region", { name: "Why" }).waitFor();
    await page.getByRole("link", { name: "logs", exact: true }).click();
    await page.getByText("the second line").waitFor();
    await checked("logs");
    await page.getByRole("searchbox").fill("SECOND");
    await page.getByText("1 line", { exact: true }).waitFor();
    await page.getByRole("link", { name: "terminal", exact: true }).click();
    await page.getByText("Connected", { exact: true }).waitFor();
    await page.keyboard.type("echo typed-$((6 * 7))\n");
    await page.locator(".xterm-rows, .xterm-accessibility-tree").getByText("typed-42").first().waitFor();
    await checked("terminal");
    await page.keyboard.type("exit 5\n");
    await page.getByText("Ended with exit code 5").waitFor();
    await page.getByRole("link", { name: "events", exact: true }).click();
    await page.getByText("Scheduled").first().waitFor();
  });

  test("the page of a pod draws what it uses, from when the page was opened", LIMIT, async () => {
    for (const [title, now] of [
      ["CPU in use, cores", /^CPU in use, cores: [\d.]+ now$/],
      ["Memory in use", /^Memory in use: [\d.]+ [KMG]iB now$/],
    ] as const) {
      await window.getByRole("figure", { name: now }).waitFor();
      // The graph appears before it is drawn, and CPU is known only from the second measurement on.
      const drawn = async (): Promise<boolean> => (await linePixels(window, title)) > 50;
      await waitFor(drawn, { what: `a line is drawn in "${title}"`, limitMs: 90_000 });
    }
    await checked("pod", window);
    await window.close();
  });

  test("a rollback and a drain show what they will do before they do it", LIMIT, async () => {
    await apply(
      webManifest({
        image: host.image,
        replicas: 2,
        command: ["sh", "-c", SERVE],
        env: { GREETING: "newer" },
      }),
    );
    await visit("resources/e2e/container_service/web", "web");
    await page.getByText("2 of 2 ready, 2 of the newest revision").waitFor();
    await page.getByRole("link", { name: "revisions", exact: true }).click();
    await page.getByRole("button", { name: "Roll back to it" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("env[GREETING].value").waitFor();
    await dialog.getByText("newer").waitFor();
    await checked("rollback");
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await page.getByText("undone to revision 1").waitFor();
    await visit("nodes/n1", "n1");
    await page.getByRole("button", { name: "Drain…" }).click();
    await dialog.getByText("would wait").first().waitFor();
    await checked("drain");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test(
    "the other pages: network, jobs, secrets by name, events, and the plan of a pasted manifest",
    LIMIT,
    async () => {
      const put = ["secret", "set", "db", "--from-file", "password=-", "-n", "e2e"];
      const { exitCode, stderr } = await system.forageInProcess(put, CANARY);
      assert.equal(exitCode, 0, stderr);
      await visit("network", "Network");
      await page.getByRole("link", { name: "web" }).waitFor();
      await checked("network");
      await visit("jobs", "Jobs");
      await checked("jobs");
      await visit("config", "Secrets and configuration");
      await page.getByText("db", { exact: true }).waitFor();
      assert.equal((await page.content()).includes(CANARY), false);
      await checked("secrets");
      await page.getByRole("button", { name: "Reveal db" }).click();
      await page.getByText(CANARY).waitFor();
      await page.getByRole("button", { name: "Close" }).click();
      await visit("events", "Events");
      await page.getByText("RolledBack").or(page.getByText("RolloutSucceeded")).first().waitFor();
      await checked("events");
      await visit("plan", "Plan");
      const manifest = webManifest({ image: host.image, replicas: 5, command: ["sh", "-c", SERVE] });
      await page.getByLabel("Manifest").fill(manifest.replace('"replicas"', '"replicsa"'));
      await page.getByRole("button", { name: "Show the plan" }).click();
      await page.getByRole("alert").getByText("replicsa").first().waitFor();
      await page.getByLabel("Manifest").fill(manifest);
      await page.getByRole("button", { name: "Show the plan" }).click();
      await page.getByText("scaling.replicas").waitFor();
      allowed("400");
      await checked("plan");
    },
  );

  test(
    "the page of workspaces shows a workspace while it runs, and never its owner token",
    LIMIT,
    async () => {
      const calls = new WorkspaceCalls(system);
      try {
        await visit("workspaces", "Workspaces");
        await page.getByText("There is no workspace.").waitFor();
        const { ownerToken, url } = await calls.start("shown");
        assert.notEqual(ownerToken, "");
        const link = page.getByRole("link", { name: "shown", exact: true });
        const row = page.getByRole("row").filter({ has: link });
        await row.getByText(/Running$/).waitFor();
        await row.getByText("n1", { exact: true }).waitFor();
        assert.equal(await row.getByRole("link", { name: "Open shown" }).getAttribute("href"), url);
        await checked("workspaces");
        assert.equal((await page.content()).includes(ownerToken), false);
        await link.click();
        await page.getByRole("region", { name: "Why" }).waitFor();
        assert.equal((await page.content()).includes(ownerToken), false);
        await visit("workspaces", "Workspaces");
        await calls.stop("shown");
        await row.getByText(/Stopped$/).waitFor();
        await calls.reaches("shown", WorkspacePhase.STOPPED);
      } finally {
        calls.close();
      }
    },
  );

  test("it is used by keyboard, in the dark and on a phone", LIMIT, async () => {
    await visit("pods", "Pods");
    await page.keyboard.press("/");
    await page.keyboard.type("web");
    await page.getByText(/^2 pods/).waitFor();
    for (let tabs = 0; tabs < 20 && (await page.locator(".rows a:focus").count()) === 0; tabs++)
      await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    const second = await page.locator("[data-index='1']:focus").textContent();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: second ?? "none", level: 1 }).waitFor();
    await page.emulateMedia({ colorScheme: "dark" });
    await visit("fleet", "Fleet");
    await page.getByRole("figure", { name: /^Memory in use: [\d.]+ [MG]iB now/ }).waitFor();
    await checked("dark");
    await page.setViewportSize({ width: 390, height: 780 });
    await checked("phone");
    const width = Number(await page.evaluate("document.documentElement.scrollWidth"));
    assert.ok(width <= 390, `the page is ${width} pixels wide`);
  });

  test(
    "a viewer is offered nothing that it may not do, and a log-out shows nothing more",
    LIMIT,
    async () => {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByLabel("API token").waitFor();
      const viewer = await system.ask<{ token: string }>(["token", "create", "--role", "viewer"]);
      await page.getByLabel("API token").fill(viewer.token);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("link", { name: "n1", exact: true }).click();
      await page.getByRole("region", { name: "Why" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Drain…" }).count(), 0);
      const refused = await page.evaluate(`fetch("api/call/drainNode", {
      method: "POST",
      headers: { "x-forage-dashboard": "1", "content-type": "application/json" },
      body: '{"name":"n1"}',
    }).then(({ status }) => status)`);
      assert.equal(refused, 403);
      allowed("403");
    },
  );

  test("nothing was refused by the page's own policy, and no script failed", () => {
    assert.deepEqual(complaints, []);
  });
});

/** Returns how many pixels of a graph have the colour of its line. A single point draws none. */
async function linePixels(page: Page, title: string): Promise<number> {
  const canvas = `figure[aria-label^=${JSON.stringify(title)}] canvas`;
  const count = await page.evaluate(`(() => {
    const canvas = document.querySelector(${JSON.stringify(canvas)});
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const near = (at, value) => Math.abs(data[at] - value) < 16;
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
      if (near(at, 0x2e) && near(at + 1, 0x9e) && near(at + 2, 0x5b) && data[at + 3] > 200) count++;
    return count;
  })()`);
  return Number(count);
}
