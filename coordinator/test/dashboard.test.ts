import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { WorkspacePhase } from "@forage/proto/core";
import type { LiveMessage } from "../src/dashboard/live/rows.ts";
import { Browser, OWN } from "./support/dashboard-browser.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const HOUR_MS = 3_600_000;

async function aBrowser(
  t: TestContext,
  role: Parameters<World["token"]>[0] = "admin",
  namespaces?: string[],
) {
  const world = await startWorld(t);
  const browser = new Browser(world.coordinator.http.port);
  const token = await world.token(role, namespaces ?? "*");
  assert.equal((await browser.login(token)).status, 200);
  return { world, browser, token };
}

test(
  "starts a session with a cookie that scripts can't read, and refuses a wrong token",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const browser = new Browser(world.coordinator.http.port);
    for (const wrong of ["", "x", 7, `flt_${"0".repeat(12)}_${"A".repeat(43)}`, "flt_\r\nx: y"]) {
      const response = await browser.post("login", { token: wrong });
      assert.equal(response.status, 401);
      assert.equal(response.headers.get("set-cookie"), null);
    }
    assert.equal((await browser.get("api/me")).status, 401);
    const token = await world.token("viewer");
    const response = await browser.login(token);
    assert.match(
      response.headers.get("set-cookie") ?? "",
      /^forage-session-\d+=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/dashboard$/,
    );
    assert.equal(
      JSON.stringify([response.headers.get("set-cookie"), await response.json()]).includes(token),
      false,
    );
    const me = (await (await browser.get("api/me")).json()) as { grants: unknown };
    assert.deepEqual(me.grants, [{ role: "viewer", namespaces: "*" }]);
    await browser.post("logout", {});
    assert.equal((await browser.get("api/me")).status, 401);
  },
);

test("refuses requests that another site may have caused", LIMIT, async (t) => {
  const { browser } = await aBrowser(t);
  const headers: Record<string, string>[] = [
    { "content-type": "application/json" },
    { ...OWN, origin: "https://evil.example" },
    { ...OWN, "sec-fetch-site": "cross-site" },
    { ...OWN, "sec-fetch-site": "same-site" },
  ];
  for (const each of headers) assert.equal((await browser.post("call/listNodes", {}, each)).status, 403);
  const own = { ...OWN, origin: browser.base.replace("/dashboard", ""), "sec-fetch-site": "same-origin" };
  assert.equal((await browser.post("call/listNodes", {}, own)).status, 200);
});

test(
  "applies the token's role and namespaces to calls, and allows only the pages' calls",
  LIMIT,
  async (t) => {
    const { world, browser } = await aBrowser(t, "viewer", ["shop"]);
    assert.equal((await browser.post("call/listPods", { namespace: "shop" })).status, 200);
    assert.equal((await browser.post("call/listPods", { namespace: "bank" })).status, 403);
    assert.equal((await browser.post("call/listPods", {})).status, 403);
    assert.equal((await browser.post("call/listNodes", {})).status, 403);
    const statusOf = async (path: string) => (await browser.get(`api/${path}`)).status;
    assert.equal(await statusOf("usage?namespace=shop&pod=web-1"), 200);
    for (const path of ["usage?namespace=bank&pod=web-1", "usage?pod=web-1", "usage?node=n1", "history"])
      assert.equal(await statusOf(path), 403, path);
    const restart = { namespace: "shop", kind: "container_service", name: "web", restart: {} };
    assert.equal((await browser.post("call/updateRollout", restart)).status, 403);
    const object = { namespace: "shop", name: "db", secret: { data: { password: "YmVhbnM=" } } };
    assert.equal((await browser.post("call/planObject", { namespace: "shop", object })).status, 403);
    await browser.login(await world.token("admin"));
    const planned = await browser.post("call/planObject", { namespace: "shop", object });
    assert.partialDeepStrictEqual(await planned.json(), { action: "create" });
    assert.equal((await browser.post("call/updateRollout", restart)).status, 404);
    for (const name of ["createApiToken", "apply", "exec", "toString", "__proto__"])
      assert.equal((await browser.post(`call/${name}`, {})).status, 404, name);
    assert.equal((await browser.post("call/listPods", [])).status, 200);
    assert.equal(
      (await fetch(`${browser.base}/api/call/listPods`, { method: "POST", headers: OWN, body: "{" })).status,
      401,
    );
  },
);

test("begins a page of events with the stored ones", LIMIT, async (t) => {
  const { world, browser } = await aBrowser(t, "viewer", ["shop"]);
  await HollowAgent.start(world);
  await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  const response = await browser.get("api/events?namespace=shop&kind=container_service&name=web");
  assert.equal(response.status, 200);
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes("RolloutStarted")) break;
  }
  assert.match(text, /^data: \[\{.*"RolloutStarted"/m);
});

test("streams what the token may see, and ends with the token", LIMIT, async (t) => {
  const { world, browser, token } = await aBrowser(t, "viewer", ["shop"]);
  await HollowAgent.start(world);
  await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await world.forage().applyResources({ ...aRequest("a2", [aContainerService("vault")]), namespace: "bank" });
  const response = await browser.get("api/live");
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const messages = messagesOf(response);
  const pods = new Set<string>();
  // Leaving the iteration at the last row would end the stream from this side.
  for (let running = false; !running; ) {
    const { value, done } = await messages.next();
    assert.ok(!done, "the stream is open");
    const message: LiveMessage = value;
    assert.equal(message.nodes, undefined);
    for (const key of Object.keys({ ...message.pods, ...message.resources })) {
      assert.match(key, /^shop\//);
      pods.add(key);
    }
    running = Object.values(message.pods ?? {}).some((row) => row?.state === "Running");
  }
  assert.ok(pods.has("shop/container_service/web"));
  const next = messages.next();
  await world.operator().revokeApiToken({ id: token.split("_")[1] ?? "" });
  for (let message = await next; !message.done; ) message = await messages.next();
  assert.equal((await browser.get("api/me")).status, 401);
});

test("streams workspaces without owner tokens to those who may list them", LIMIT, async (t) => {
  const { world, calls, reaches } = await startWorkspaceWorld(t);
  const { ownerToken } = await calls.startWorkspace(aStart());
  await reaches("instance-1", WorkspacePhase.RUNNING);
  const browser = new Browser(world.coordinator.http.port);
  const shown = async (namespace: string): Promise<LiveMessage> => {
    await browser.login(await world.token("viewer", [namespace]));
    const messages = messagesOf(await browser.get("api/live"));
    const { value } = await messages.next();
    await messages.return(undefined);
    assert.ok(value);
    return value;
  };
  const { workspaces } = await shown("workspaces");
  const { phase, url, namespace } = workspaces?.["instance-1"] ?? {};
  assert.deepEqual([phase, url, namespace], ["Running", "https://prefix-1.ws.example.test", "workspaces"]);
  assert.notEqual(ownerToken, "");
  assert.equal(JSON.stringify(workspaces).includes(ownerToken), false);
  assert.equal((await shown("shop")).workspaces, undefined);
});

test("ends a session without a request for 8 hours, and its streams", LIMIT, async (t) => {
  const { world, browser } = await aBrowser(t);
  const messages = messagesOf(await browser.get("api/live"));
  await messages.next();
  for (let turn = 0; turn < 2; turn++) {
    world.clock.skip(7 * HOUR_MS);
    assert.equal((await browser.get("api/me")).status, 200, "a request is use");
  }
  const rest = messages.next();
  world.clock.skip(8 * HOUR_MS);
  for (let message = await rest; !message.done; ) message = await messages.next();
  assert.equal((await browser.get("api/me")).status, 401);
});

test("ends the streams of a session at a log-out", LIMIT, async (t) => {
  const { browser } = await aBrowser(t);
  const messages = messagesOf(await browser.get("api/live"));
  await messages.next();
  const rest = messages.next();
  await browser.post("logout", {});
  for (let message = await rest; !message.done; ) message = await messages.next();
});

test("allows the page only its own files, and reads them at the first request", LIMIT, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-dashboard-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const dashboardPath = join(dir, "dashboard.json");
  const world = await startWorld(t, {}, {}, { dashboardPath });
  const browser = new Browser(world.coordinator.http.port);
  const missing = await browser.get("");
  assert.equal(missing.status, 503);
  assert.match(await missing.text(), /npm run bundle/);
  const file = (type: string, text: string) => ({ type, gzip: gzipSync(text).toString("base64") });
  const files = {
    "index.html": file("text/html", '<meta content="{{nonce}}"><title>{{cluster}}</title>'),
    "app.js": file("text/javascript", "1"),
  };
  writeFileSync(dashboardPath, JSON.stringify(files));
  const page = await browser.get("");
  const policy = page.headers.get("content-security-policy") ?? "";
  const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? "";
  assert.equal(await page.text(), `<meta content="${nonce}"><title>forage</title>`);
  assert.match(policy, /^default-src 'none'; script-src 'self';/);
  for (const [header, value] of [
    ["x-frame-options", "DENY"],
    ["cross-origin-opener-policy", "same-origin"],
    ["cross-origin-resource-policy", "same-origin"],
    ["referrer-policy", "no-referrer"],
  ] as const)
    assert.equal(page.headers.get(header), value);
  assert.match(policy, /connect-src 'self'.*frame-ancestors 'none'.*require-trusted-types-for 'script'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.equal(page.headers.get("cache-control"), "no-store");
  const script = await browser.get("assets/1234/app.js");
  assert.deepEqual([script.status, await script.text()], [200, "1"]);
  assert.match(script.headers.get("cache-control") ?? "", /immutable/);
  assert.equal(script.headers.get("x-content-type-options"), "nosniff");
  assert.equal((await browser.get("assets/1234/nothing.js")).status, 404);
});

async function* messagesOf(response: Response): AsyncGenerator<LiveMessage> {
  const decoder = new TextDecoderStream();
  let rest = "";
  try {
    for await (const chunk of response.body?.pipeThrough(decoder as never) ?? []) {
      rest += chunk as unknown as string;
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks)
        if (block.startsWith("data: ")) yield JSON.parse(block.slice(6)) as LiveMessage;
    }
  } catch {
    // The server closes the connection of a stream that it ends.
  }
}
