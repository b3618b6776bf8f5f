import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodStatus } from "../pods/decide/pod-status.ts";
import { startHttpServer } from "./http-server.ts";
import { Metrics } from "./metrics.ts";

test("serves health, readiness with reasons, and metrics", async (t) => {
  let figures: string | undefined;
  const problems: string[] = ["coordinator: connecting"];
  let isRefused = false;
  const metrics = new Metrics({
    statuses: () => [aStatus("RUNNING", true), aStatus("PENDING", false)],
    usage: async () => ({ cpuNanos: 1_500_000_000, memoryBytes: 300, workingSetBytes: 200, oomKills: 1 }),
    link: () => ({ kind: "connected", sinceMs: 0, certificateEndsMs: 60_000 }),
    assignmentRevision: () => 7n,
    sessions: () => 2,
    gatewayReady: () => true,
    disk: async () => ({ totalBytes: 100, availableBytes: 40 }),
    nowMs: () => 0,
  });
  metrics.stepped({ type: "attachSandbox" }, 20, false);
  metrics.journalWriteFailed();
  const server = await startHttpServer({
    listen: { host: "127.0.0.1", port: 0 },
    problems: () => problems,
    isRefused: () => isRefused,
    metrics,
    gatewayMetrics: async () => figures,
  });
  t.after(() => server.close());
  const ask = (path: string) => fetch(`http://127.0.0.1:${server.address.port}${path}`);

  assert.equal((await ask("/healthz")).status, 200);
  const unready = await ask("/readyz");
  assert.equal(unready.status, 503);
  assert.deepEqual(await unready.json(), { ready: false, reasons: problems });
  isRefused = true;
  const refused = await ask("/readyz");
  assert.deepEqual(await refused.json(), { ready: false, reasons: problems, refused: true });
  isRefused = false;
  problems.length = 0;
  assert.equal((await ask("/readyz")).status, 200);
  assert.equal((await ask("/elsewhere")).status, 404);
  assert.equal((await ask("/gateway/metrics")).status, 503);
  figures = "envoy_x 1\n";
  assert.equal(await (await ask("/gateway/metrics")).text(), figures);

  const text = await (await ask("/metrics")).text();
  for (const line of [
    'forage_agent_pods{phase="RUNNING"} 1',
    'forage_agent_pods{phase="PENDING"} 1',
    "forage_agent_pods_ready 1",
    "forage_agent_container_restarts 6",
    'forage_container_cpu_seconds_total{namespace="default",pod="pod",container="main"} 1.5',
    'forage_container_memory_working_set_bytes{namespace="default",pod="pod",container="main"} 200',
    'forage_container_oom_kills_total{namespace="default",pod="pod",container="main"} 1',
    "forage_agent_connected 1",
    "forage_agent_certificate_seconds 60",
    "forage_agent_assignment_revision 7",
    "forage_agent_sessions 2",
    "forage_agent_gateway_ready 1",
    "forage_agent_journal_write_failures_total 1",
    'forage_agent_disk_bytes{what="available"} 40',
    'forage_agent_pod_step_seconds_count{step="attachSandbox",outcome="ok"} 1',
  ]) {
    assert.ok(text.includes(`${line}\n`), `${line}\n\n${text}`);
  }
});

function aStatus(phase: PodStatus["phase"], ready: boolean): PodStatus {
  const waiting = { type: "waiting", reason: "ContainerCreating", message: "" } as const;
  const state = phase === "RUNNING" ? ({ type: "running", startedAtMs: 0 } as const) : waiting;
  const more = { terminations: [], init: false, started: ready };
  const container = { name: "main", image: "app:1", containerId: "", state, restarts: 3, ready, ...more };
  return {
    uid: "p",
    namespace: "default",
    name: "pod",
    specHash: "h",
    phase,
    ready,
    reason: "",
    message: "",
    podIp: "",
    podIps: [],
    containers: [container],
    hostPorts: [],
  };
}
