import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { linePixels } from "../lib/browser.ts";
import { ensureEnvoy } from "../lib/envoy.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { planOtherNotations } from "../system/dashboard-plans.ts";
import { keepPastedManifests, outliveSessions } from "../system/dashboard-sessions.ts";
import { DashboardTour } from "../system/dashboard-tour.ts";
import { dashboardViews } from "../system/dashboard-views.ts";
import { showWorkspace } from "../system/dashboard-workspaces.ts";
import { askGateway, HOSTNAME, web, worldManifests } from "../system/dashboard-world.ts";
import { checkLargeFleet, checkRolloutStages } from "../system/large-fleet.ts";
import { webManifest } from "../system/manifests.ts";
import { freeAddresses, type System, startSystem } from "../system/system.ts";

const LIMIT = { timeout: 240_000 };
/** The time for every page several times, on a machine that runs other tests. */
const LONG_LIMIT = { timeout: 400_000 };
const CANARY = "hunter2-canary";

describe("the dashboard in a browser, over real pods", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;
  let tour: DashboardTour;
  let page: Page;
  /** A second window that shows a pod while the first one is used. */
  let window: Page;
  let token: string;
  let gatewayPort = 0;

  before(async () => {
    const starting = DashboardTour.start();
    host = await startTestHost();
    const envoy = await ensureEnvoy();
    const [httpPort = 0, httpsPort = 0] = (await freeAddresses(2)).map((it) => Number(it.split(":")[1]));
    gatewayPort = httpPort;
    system = await startSystem(host, {
      agent: {
        workspaces: { enabled: true },
        gateway: { envoy, address: "127.0.0.1", httpPort, httpsPort },
        labels: { "topology.kubernetes.io/zone": "cellar" },
      },
      coordinator: {
        // Nodes measure their pods at the same interval.
        autoscaling: { intervalSeconds: 1 },
        certificates: { issuer: "self-signed" },
        workspaces: {
          enabled: true,
          classes: [{ id: "small", cpu: "10m", memory: "32Mi" }],
          command: ["sh", "-c", 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'],
        },
      },
    });
    tour = await starting;
    page = tour.page;
    token = readFileSync(system.tokenFile, "utf8").trim();
    await forage(["node", "label", "n1", "forage.dev/gateway=default"]);
  }, LIMIT);
  after(async () => {
    await tour?.close();
    await host?.close();
  }, LIMIT);

  async function forage(args: readonly string[], input?: string): Promise<void> {
    const { exitCode, stderr } = await system.forageInProcess(args, input);
    assert.equal(exitCode, 0, stderr);
  }

  const apply = (manifest: string): Promise<void> => forage(["apply", "--detach", "-f", "-"], manifest);

  test("a token opens the dashboard, and deployed objects appear without a reload", LIMIT, async () => {
    await page.goto(`http://${system.http}/`);
    await page.getByLabel("API token").fill("flt_wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("alert").waitFor();
    await tour.checked("login");
    await page.getByLabel("API token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: "n1", exact: true }).waitFor();
    await page.getByRole("link", { name: "Pods", exact: true }).click();
    await page.getByText("No pod matches").waitFor();
    await apply(web(host.image));
    await page.getByText("2 pods · 2 ready").waitFor();
    const pod = await page.getByRole("link", { name: /^web-/ }).first().getAttribute("href");
    window = await tour.context.newPage();
    await window.goto(new URL(pod ?? "", page.url()).href);
    for (const manifest of worldManifests(host.image)) await apply(manifest);
    const metric = await fetch(`http://${system.http}/api/v1/namespaces/e2e/metrics/orders`, {
      method: "PUT",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ value: 8, ttlSeconds: 3_600 }),
    });
    assert.equal(metric.status, 200, await metric.text());
  });

  test("a pod shows why it fails, its log as it is written, and a terminal", LIMIT, async () => {
    const command = ["sh", "-c", "echo no beans; exit 3"];
    await apply(webManifest({ name: "broken", image: host.image, replicas: 1, command }));
    await tour.visit("workloads", "Workloads");
    await page.getByRole("link", { name: "broken" }).click();
    await page.getByRole("region", { name: "Why" }).getByText("no beans").first().waitFor();
    await page.getByRole("region", { name: "Replicas" }).getByRole("link").first().click();
    await page
      .getByText(/Restarted [1-9]\d* times/)
      .first()
      .waitFor();
    await page.getByRole("link", { name: "logs", exact: true }).click();
    await page.getByLabel("Previous run").click();
    await page.getByText("no beans").first().waitFor();
    await tour.visit("pods", "Pods");
    await page.getByRole("searchbox").fill("web");
    await page.getByText("2 pods · 2 ready").waitFor();
    await page.getByRole("link", { name: /^web-/ }).first().click();
    await page.getByRole("region", { name: "Why" }).waitFor();
    await page.getByRole("link", { name: "logs", exact: true }).click();
    await page.getByText("the second line").waitFor();
    await tour.checked("logs");
    await page.getByRole("searchbox").fill("SECOND");
    await page.getByText("1 line", { exact: true }).waitFor();
    const [shown = ""] = /web-[^/?]+/.exec(page.url()) ?? [];
    await forage(["exec", shown, "-n", "e2e", "--", "sh", "-c", "echo another second line > /proc/1/fd/1"]);
    await page.getByText("another second line").waitFor();
    await page.getByRole("link", { name: "terminal", exact: true }).click();
    await page.getByText("Connected", { exact: true }).waitFor();
    await page.keyboard.type("echo typed-$((6 * 7))\n");
    await page.locator(".xterm-rows, .xterm-accessibility-tree").getByText("typed-42").first().waitFor();
    await tour.checked("terminal");
    await page.keyboard.type("exit 5\n");
    await page.getByText("Ended with exit code 5").waitFor();
  });

  test("the containers of a pod are offered by their names, each once", LIMIT, async () => {
    await tour.visit("pods", "Pods");
    await page
      .getByRole("link", { name: /^scaled-/ })
      .first()
      .click();
    await page.getByRole("link", { name: "logs", exact: true }).click();
    await page.getByRole("option", { name: "worker" }).waitFor({ state: "attached" });
    const choice = page.getByLabel("Container");
    assert.deepEqual([await choice.inputValue(), await choice.locator("option").count()], ["worker", 1]);
  });

  test("a port of a pod is opened under its own host name", LIMIT, async () => {
    await tour.visit("pods", "Pods");
    await page.getByRole("link", { name: /^web-/ }).first().click();
    const coming = tour.context.waitForEvent("page");
    await page.getByRole("button", { name: "Open port 8080" }).click();
    const opened = await coming;
    await opened.getByRole("heading", { name: "beans" }).waitFor();
    const { hostname, pathname } = new URL(opened.url());
    assert.match(`${hostname}${pathname}`, /^p-[0-9a-f]{20}\.localhost\/$/);
    const names = (await tour.context.cookies(opened.url())).map(({ name }) => name);
    assert.deepEqual(names, ["forage-port"], "the dashboard's own cookie does not go there");
    await opened.close();
  });

  test("the page of a pod draws its usage since the page was opened", LIMIT, async () => {
    for (const [title, now] of [
      ["CPU in use, cores", /^CPU in use, cores: [\d.]+ now$/],
      ["Memory in use", /^Memory in use: [\d.]+ [KMG]iB now$/],
    ] as const) {
      await window.getByRole("figure", { name: now }).waitFor();
      // The graph appears before it is drawn, and CPU is known only from the second measurement on.
      const drawn = async (): Promise<boolean> => (await linePixels(window, title)) > 50;
      await waitFor(drawn, { what: `a line is drawn in "${title}"`, limitMs: 90_000 });
    }
    await window.close();
  });

  test("a rollback shows what it will do, and keeps the current number of replicas", LIMIT, async () => {
    await apply(web(host.image, { greeting: "newer" }));
    await tour.visit("resources/e2e/container_service/web", "web");
    await page.getByText("2 of 2 ready, 2 of the newest revision").waitFor();
    await forage(["scale", "container_service/web", "3", "-n", "e2e", "--detach"]);
    await page.getByText("3 of 3 ready, 3 of the newest revision").waitFor();
    await page.getByRole("link", { name: "revisions", exact: true }).click();
    await page.getByRole("button", { name: "Roll back to it" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("env[GREETING].value").waitFor();
    await dialog.getByText("undone to revision 1").waitFor();
    assert.equal(await dialog.getByText("scaling").count(), 0, "it says nothing of fewer replicas");
    await tour.checked("rollback");
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await page.getByRole("status").getByText("undone to revision 1").waitFor();
    await page.getByRole("link", { name: "overview", exact: true }).click();
    await page.getByText("3 of 3 ready, 3 of the newest revision").waitFor();
  });

  test("a rollout is paused and resumed, and a restart shows its steps first", LIMIT, async () => {
    await tour.visit("resources/e2e/container_service/web", "web");
    for (const name of ["Resume", "Promote"])
      assert.equal(await page.getByRole("button", { name }).count(), 0, `there is nothing to ${name}`);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByRole("button", { name: "Restart…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("create-pods").first().waitFor();
    await tour.checked("restart");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("a drain can be confirmed once its preview is loaded or has failed", LIMIT, async () => {
    const asked = Promise.withResolvers<void>();
    await page.route("**/api/call/whatIf", async (route) => {
      await asked.promise;
      await route.fulfill({ status: 503, json: { code: "UNAVAILABLE", message: "no preview today" } });
    });
    await tour.visit("nodes/n1", "n1");
    await page.getByRole("button", { name: "Drain…" }).click();
    const dialog = page.getByRole("dialog");
    assert.equal(await dialog.getByRole("button", { name: "Drain n1" }).isDisabled(), true);
    asked.resolve();
    await dialog.getByRole("button", { name: "Drain n1 anyway, without a preview" }).waitFor();
    tour.allowed("status of 503");
    await page.keyboard.press("Escape");
    await page.unroute("**/api/call/whatIf");
    await page.getByRole("button", { name: "Drain…" }).click();
    await dialog.getByText("would wait").first().waitFor();
    assert.equal(await dialog.getByRole("button", { name: "Drain n1" }).isDisabled(), false);
    await tour.checked("drain");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("a cron job shows its next run, and a run that is started appears", LIMIT, async () => {
    await tour.visit("jobs", "Jobs");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "tick", exact: true }) });
    await row.getByText(/^in \d+ d$/).waitFor();
    await page.getByRole("link", { name: "tick", exact: true }).click();
    await page.getByRole("button", { name: "Run now" }).click();
    await tour.visit("jobs", "Jobs");
    await page.getByText("1/1 done").waitFor();
  });

  test(
    "secrets are listed by name, can be reached by keyboard, and are linked from events",
    LIMIT,
    async () => {
      await tour.visit("config", "Secrets and configuration");
      await forage(["secret", "set", "db", "--from-file", "password=-", "-n", "e2e"], CANARY);
      await page.getByText("db", { exact: true }).waitFor();
      assert.equal((await page.content()).includes(CANARY), false);
      await page.locator("[data-index='0']").focus();
      await page.keyboard.press("ArrowDown");
      await page.locator("[data-index='1']:focus").waitFor();
      await page.getByRole("button", { name: "Reveal db" }).click();
      await page.getByText(CANARY).waitFor();
      await tour.checked("reveal");
      await page.getByRole("button", { name: "Close" }).click();
      await tour.visit("events", "Events");
      await page.getByText("RolledBack").or(page.getByText("RolloutSucceeded")).first().waitFor();
      await page.getByRole("link", { name: "secret/db" }).first().click();
      await page.getByRole("heading", { name: "Secrets and configuration", level: 1 }).waitFor();
      assert.equal(await page.getByRole("searchbox").inputValue(), "db");
      await tour.visit("events", "Events");
      await page.getByRole("searchbox").fill("certificate/");
      await page
        .getByRole("link", { name: `certificate/${HOSTNAME}` })
        .first()
        .click();
      await page.getByRole("heading", { name: "Network", level: 1 }).waitFor();
    },
  );

  test("a renewed certificate replaces the previous one without a reload", LIMIT, async () => {
    await tour.visit("network", "Network");
    const item = page.getByRole("listitem").filter({ hasText: HOSTNAME });
    await item.getByText("ready").waitFor();
    const before = await item.textContent();
    await item.getByRole("button", { name: `Renew ${HOSTNAME}` }).click();
    const isOther = async (): Promise<boolean> => {
      const now = (await item.textContent()) ?? "";
      return now !== before && now.includes("ready");
    };
    await waitFor(isOther, { what: "the other certificate is shown", limitMs: 90_000 });
  });

  test("responses of the gateway are drawn as a rate", LIMIT, async () => {
    await tour.visit("network", "Network");
    const graph = page.getByRole("figure", { name: /^Gateway requests\/s: [\d.]*[1-9]/ });
    const counted = async (): Promise<boolean> => {
      await Promise.all(Array.from({ length: 50 }, () => askGateway(gatewayPort)));
      return (await graph.count()) > 0;
    };
    await waitFor(counted, { what: "the graph shows requests", limitMs: 150_000 });
  });

  test("the plan of a pasted manifest, with the faults of one that is wrong", LIMIT, async () => {
    await tour.visit("plan", "Plan");
    const manifest = web(host.image, { replicas: 5 });
    await page.locator("#manifest").fill(manifest.replace('"replicas"', '"replicsa"'));
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByRole("alert").getByText("replicsa").first().waitFor();
    await page.locator("#manifest").fill(manifest);
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByText("scaling.replicas").waitFor();
    tour.allowed("status of 400");
    await tour.checked("plan");
  });

  test("pasted manifests of Kubernetes and Compose are converted and planned", LIMIT, () =>
    planOtherNotations(tour, system, host.image),
  );

  test("a workspace is shown while it runs, and never its owner token", LIMIT, () =>
    showWorkspace(tour, system),
  );

  test(
    "every page is accessible and fits the screen, in light and dark mode, on a desktop and on a phone",
    LONG_LIMIT,
    async () => {
      await tour.visit("pods", "Pods");
      const pod = await page.getByRole("link", { name: /^web-/ }).first().textContent();
      await tour.visit("jobs", "Jobs");
      const job = await page
        .getByRole("link", { name: /^tick-/ })
        .first()
        .textContent();
      await tour.checkAll(dashboardViews(pod ?? "", job ?? ""));
    },
  );

  test("the dashboard can be used with the keyboard alone", LIMIT, async () => {
    await tour.visit("pods", "Pods");
    await page.keyboard.press("/");
    await page.keyboard.type("web");
    await page.getByText(/^3 pods/).waitFor();
    for (let tabs = 0; tabs < 20 && (await page.locator(".rows a:focus").count()) === 0; tabs++)
      await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    const second = await page.locator("[data-index='1']:focus").textContent();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: second ?? "none", level: 1 }).waitFor();
  });

  test("tables of 1,000 nodes and 10,000 pods have few rows in the document", LIMIT, () =>
    checkLargeFleet(tour),
  );

  test("replicas of a rollout are shown placed, pulling with percent, starting and ready", LIMIT, () =>
    checkRolloutStages(tour),
  );

  test("a viewer is offered only what its role permits", LIMIT, async () => {
    await page.getByRole("button", { name: "Log out" }).click();
    const viewer = await system.ask<{ token: string }>(["token", "create", "--role", "viewer"]);
    await page.getByLabel("API token").fill(viewer.token);
    await page.route("**/api/login", (route) => route.abort("connectionreset"), { times: 1 });
    await tour.visitOnceShown("nodes/n1");
    await page.getByRole("button", { name: "Log in" }).click();
    await tour.shows("n1");
    await page.getByRole("region", { name: "Why" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Drain…" }).count(), 0);
    await tour.visit("config", "Secrets and configuration");
    await page.getByText("db", { exact: true }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Reveal db" }).count(), 0);
    const refused = await page.evaluate(`fetch("api/call/drainNode", {
      method: "POST",
      headers: { "x-forage-dashboard": "1", "content-type": "application/json" },
      body: '{"name":"n1"}',
    }).then(({ status }) => status)`);
    assert.equal(refused, 403);
    tour.allowed("ERR_CONNECTION_RESET", "status of 403");
  });

  test("an expired session leads to the login, and from there back to the page", LIMIT, () =>
    outliveSessions(tour, system, token),
  );

  test("a pasted manifest survives its session, unless it may contain secrets", LIMIT, () =>
    keepPastedManifests(tour, token),
  );

  test("an open page sends no requests at intervals, because it follows its streams", LIMIT, async () => {
    assert.deepEqual([...(await tour.askedInAnHour("Fleet")), ...(await tour.askedInAnHour("Pods"))], []);
  });

  test("the page's own policy refused nothing, and no script failed", () => {
    assert.deepEqual(tour.complaints, []);
  });
});
