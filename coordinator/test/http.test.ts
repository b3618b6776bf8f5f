import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { readConfig } from "../src/config.ts";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };

test("reports that it is alive and ready", LIMIT, async (t) => {
  const world = await startWorld(t);
  const health = await get(world, "/healthz");
  assert.deepEqual([health.status, await health.text()], [200, "ok\n"]);
  const ready = await get(world, "/readyz");
  assert.equal(ready.status, 200);
  assert.deepEqual(await ready.json(), { ready: true, reasons: [] });
});

test("serves metrics without names", LIMIT, async (t) => {
  const world = await startWorld(t);
  await HollowAgent.start(world);
  await watchToEnd(
    world,
    (await world.forage().applyResources(aRequest("a1", [aContainerService("web")]))).rolloutId,
  );
  await assert.rejects(world.forage().applyResources(aRequest("", [])));
  const response = await get(world, "/metrics");
  assert.match(response.headers.get("content-type") ?? "", /^text\/plain/);
  const text = await response.text();
  for (const line of [
    "forage_nodes 1",
    "forage_nodes_ready 1",
    "forage_pods_unplaced 0",
    'forage_pods{phase="running"} 2',
    "forage_rollouts_active 0",
    "forage_store_writable 1",
    'forage_grpc_calls_total{method="/forest.v1.ForageService/ApplyResources",code="0"} 1',
    'forage_grpc_calls_total{method="/forest.v1.ForageService/ApplyResources",code="3"} 1',
    'forage_grpc_calls_total{method="/forest.v1.ForageService/WatchRollout",code="0"} 1',
  ])
    assert.ok(text.split("\n").includes(line), `${line} is not in\n${text}`);
  assert.match(text, /process_resident_memory_bytes \d/);
  assert.doesNotMatch(text, /flt_|shop/);
});

test("answers other paths with 404", LIMIT, async (t) => {
  const world = await startWorld(t);
  for (const path of ["/nothing", "/healthz/x", "/metrics/../../etc/passwd"])
    assert.equal((await get(world, path)).status, 404);
  assert.equal((await get(world, "/healthz", { method: "POST", body: "x" })).status, 404);
});

test("warns at the start of an HTTP port that browsers refuse", LIMIT, async (t) => {
  const events = await eventsOfStart(t, "127.83.19.47:10080");
  assert.deepEqual(
    events.filter(({ level }) => level === 40),
    [
      {
        level: 40,
        event: "http-port-blocked-by-browsers",
        http: { host: "127.83.19.47", port: 10080 },
      },
    ],
  );
  assert.deepEqual(
    (await eventsOfStart(t, "127.0.0.1:0")).filter(({ level }) => level === 40),
    [],
  );
});

/** Starts a coordinator with this HTTP address, and returns the events that it logs until then. */
async function eventsOfStart(t: TestContext, address: string): Promise<{ readonly level: number }[]> {
  const { http } = readConfig(["--data-dir", "/nonexistent", "--http", address], {});
  const lines: string[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(line) });
  await startWorld(t, {}, { http }, { log });
  return lines.map((line) => JSON.parse(line));
}

function get(world: World, path: string, init: RequestInit = {}): Promise<Response> {
  const { host, port } = world.coordinator.http;
  return fetch(`http://${host}:${port}${path}`, init);
}
