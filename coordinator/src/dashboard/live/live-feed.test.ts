import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { WorkspacePhase, WorkspaceStatus } from "@forage/proto/core";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { Certificate } from "@forage/proto/forage/operator/v1/operator";
import { ObjectRecord, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { aCronJobEntry, aNode, aPod, aServiceEntry, aWorkloadEntry } from "../../../test/support/entries.ts";
import { HandFedState } from "../../../test/support/hand-fed-state.ts";
import { settled } from "../../../test/support/until.ts";
import type { Contents } from "../../../test/support/view.ts";
import { encodeRecord } from "../../model/codec.ts";
import { objectKey, workloadStatusKey } from "../../model/keys.ts";
import type { LiveCertificates } from "./certificate-row.ts";
import { type LiveFeedOptions, liveFeed, MAX_ROWS } from "./live-feed.ts";
import { LiveTables } from "./live-tables.ts";
import type { LiveMessage } from "./rows.ts";
import type { LiveWorkspaces } from "./workspace-row.ts";

const READY = { phase: PodPhase.RUNNING, ready: true };
/** Longer than the pause between messages. */
const LATER_MS = 1_000;
const MAX_TURNS = 20;

function aFeed(
  contents: Contents,
  options: Partial<LiveFeedOptions> = {},
  workspaces?: LiveWorkspaces,
  liveCertificates?: LiveCertificates,
) {
  const fed = new HandFedState(contents);
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const reasons = new Map<string, string>();
  const tables = new LiveTables({
    workspaces,
    liveCertificates,
    state: fed.state,
    clock,
    autoscale: { statusOf: () => undefined },
    gateways: { statusOf: () => undefined, nodeState: () => undefined } as never,
    unschedulable: {
      get: (uid) => {
        const summary = reasons.get(uid);
        return summary === undefined ? undefined : { summary, sinceMs: 0 };
      },
    },
  });
  const over = new AbortController();
  const feed = liveFeed(
    {
      tables,
      clock,
      seesNodes: true,
      seesWorkspaces: true,
      seesCertificates: true,
      seesNamespace: () => true,
      ...options,
    },
    over.signal,
  );
  const next = async (): Promise<LiveMessage> => {
    const waiting = { over: false };
    const coming = feed.next().finally(() => {
      waiting.over = true;
    });
    for (let turn = 0; turn < MAX_TURNS && !waiting.over; turn++) {
      await settled();
      if (!waiting.over) clock.advance(LATER_MS);
    }
    assert.ok(waiting.over, "there is a message");
    const { value } = await coming;
    return JSON.parse(value ?? "{}") as LiveMessage;
  };
  return { fed, clock, tables, reasons, feed, over, next };
}

test("sends all rows first and then the changed ones", async () => {
  const web = aPod({ status: READY });
  const { fed, feed, next } = aFeed({
    nodes: [aNode()],
    resources: [aWorkloadEntry(), aServiceEntry()],
    pods: [web],
  });
  const first = await next();
  assert.deepEqual([first.reset, first.complete], [true, true]);
  assert.deepEqual(Object.keys(first.nodes ?? {}), ["n1"]);
  assert.deepEqual(Object.keys(first.resources ?? {}).sort(), [
    "shop/container_service/web",
    "shop/service/web",
  ]);
  assert.equal(first.pods?.["shop/web-1"]?.state, "Running");
  fed.put({ pods: [aPod({ status: { ...READY, ready: false } })] });
  const second = await next();
  assert.equal(second.pods?.["shop/web-1"]?.state, "NotReady");
  assert.equal(second.reset, undefined);
  // Rows that depend on a pod are sent together with it.
  assert.deepEqual(Object.keys(second.resources ?? {}).sort(), [
    "shop/container_service/web",
    "shop/service/web",
  ]);
  fed.remove(web.key);
  assert.equal((await next()).pods?.["shop/web-1"], null);
  await feed.return(undefined);
});

test("sends a slow reader the newest state of each object once, regardless of the number of changes", async () => {
  const { fed, feed, next } = aFeed({ pods: [aPod(), aPod({ name: "web-2" })] });
  await next();
  for (let restarts = 1; restarts <= 1_000; restarts++) {
    const containers = [{ name: "main", restartCount: restarts }];
    fed.put({ pods: [aPod({ status: { ...READY, containers } })] });
  }
  const { pods } = await next();
  assert.deepEqual(Object.keys(pods ?? {}), ["shop/web-1"]);
  assert.equal(pods?.["shop/web-1"]?.restarts, 1_000);
  await feed.return(undefined);
});

test("sends 10,000 pods in messages of limited size, and the change of one pod as one row", async () => {
  const pods = Array.from({ length: 10_000 }, (_, index) =>
    aPod({ name: `web-${index}`, node: `n${index % 1_000}`, status: READY }),
  );
  const nodes = Array.from({ length: 1_000 }, (_, index) => aNode({ name: `n${index}` }));
  const { fed, feed, next } = aFeed({ nodes, pods });
  const messages: LiveMessage[] = [];
  do messages.push(await next());
  while (messages.at(-1)?.complete !== true);
  const sizes = messages.map(({ nodes: n = {}, pods: p = {} }) => Object.keys({ ...n, ...p }).length);
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    11_000,
  );
  assert.ok(Math.max(...sizes) <= MAX_ROWS);
  assert.equal(messages.filter(({ reset }) => reset).length, 1);
  fed.put({ pods: [aPod({ name: "web-7", node: "n7", status: { ...READY, ready: false } })] });
  const change = await next();
  assert.deepEqual(Object.keys(change.pods ?? {}), ["shop/web-7"]);
  assert.equal(change.nodes?.n8, undefined);
  await feed.return(undefined);
});

test("omits rows of namespaces and nodes that the caller may not see", async () => {
  const { fed, feed, next } = aFeed(
    { nodes: [aNode()], pods: [aPod(), aPod({ name: "b-1", namespace: "bank" })] },
    { seesNodes: false, seesNamespace: (namespace) => namespace === "shop" },
  );
  const first = await next();
  assert.deepEqual([first.nodes, Object.keys(first.pods ?? {})], [undefined, ["shop/web-1"]]);
  fed.put({ pods: [aPod({ name: "b-2", namespace: "bank" }), aPod({ name: "web-2" })] });
  assert.deepEqual(Object.keys((await next()).pods ?? {}), ["shop/web-2"]);
  await feed.return(undefined);
});

test("sends changed workspace instances to callers that may see them", async () => {
  const phases = new Map<string, WorkspacePhase>([["i-1", WorkspacePhase.RUNNING]]);
  const listeners = new Set<(id: string) => void>();
  const workspaces = {
    namespace: "workspaces",
    ids: () => [...phases.keys()],
    statusOf: (id: string) => {
      const phase = phases.get(id);
      return phase === undefined ? undefined : WorkspaceStatus.fromPartial({ id, phase });
    },
    subscribe: (changed: (id: string) => void) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
  };
  const { feed, next } = aFeed({}, {}, workspaces);
  assert.equal((await next()).workspaces?.["i-1"]?.phase, "Running");
  phases.set("i-1", WorkspacePhase.STOPPING);
  for (const changed of listeners) changed("i-1");
  assert.equal((await next()).workspaces?.["i-1"]?.phase, "Stopping");
  phases.delete("i-1");
  for (const changed of listeners) changed("i-1");
  assert.equal((await next()).workspaces?.["i-1"], null);
  await feed.return(undefined);
  assert.equal(listeners.size, 0);
  const other = aFeed({}, { seesWorkspaces: false }, workspaces);
  assert.equal((await other.next()).workspaces, undefined);
  await other.feed.return(undefined);
});

test("sends objects without values and with the number of their pods, and removes deleted objects", async () => {
  const { fed, feed, next } = aFeed(
    { nodes: [aNode()] },
    { seesNamespace: (namespace) => namespace === "shop" },
  );
  assert.equal((await next()).objects, undefined, "priority classes belong to no namespace");
  const name = { namespace: "shop", kind: "secret", name: "db" } as const;
  const record = ObjectRecord.fromPartial({ ...name, sizes: { password: 12 }, versions: ["v1"] });
  fed.write({ type: "put", key: objectKey(name), value: encodeRecord(ObjectRecord, record) });
  const row = (await next()).objects?.["shop/secret/db"];
  assert.deepEqual(row, { ...name, about: "", sizes: { password: 12 }, usedBy: 0, updatedMs: 0 });
  fed.remove(objectKey(name));
  assert.equal((await next()).objects?.["shop/secret/db"], null);
  await feed.return(undefined);
});

test("sends certificates that appear, change and disappear without an event to callers that may see them", async () => {
  const states = new Map([["a.example", "issuing"]]);
  const certificates = {
    hostnames: () => [...states.keys()],
    viewOf: (hostname: string) => {
      const state = states.get(hostname);
      return state === undefined ? undefined : Certificate.fromPartial({ hostname, state });
    },
  };
  const { feed, next } = aFeed({}, {}, undefined, certificates);
  assert.equal((await next()).certificates?.["a.example"]?.tone, "busy");
  states.set("a.example", "ready").set("b.example", "issuing");
  const { certificates: changed } = await next();
  assert.deepEqual([changed?.["a.example"]?.tone, changed?.["b.example"]?.tone], ["good", "busy"]);
  states.delete("a.example");
  assert.equal((await next()).certificates?.["a.example"], null);
  await feed.return(undefined);
  const other = aFeed({}, { seesCertificates: false }, undefined, certificates);
  assert.equal((await other.next()).certificates, undefined);
  await other.feed.return(undefined);
});

test("updates the next run of a cron job as time passes", async () => {
  const { feed, next, clock } = aFeed({ resources: [aCronJobEntry({ spec: { schedule: "* * * * *" } })] });
  const nextMs = async () => (await next()).resources?.["shop/cron_job/nightly"]?.nextMs ?? 0;
  const first = await nextMs();
  assert.ok(first > clock.nowMs());
  clock.advance(60_000);
  assert.ok((await nextMs()) > first);
  await feed.return(undefined);
});

test("marks the row of a paused rollout", async () => {
  const { fed, feed, next } = aFeed({ resources: [aWorkloadEntry()] });
  const key = "shop/container_service/web";
  assert.equal((await next()).resources?.[key]?.paused, undefined);
  const record = WorkloadStatusRecord.fromPartial({
    ...{ namespace: "shop", kind: "container_service", name: "web" },
    status: { $case: "containerService", value: { paused: true } },
  });
  const statusKey = workloadStatusKey("shop", "container_service", "web");
  fed.write({ type: "put", key: statusKey, value: encodeRecord(WorkloadStatusRecord, record) });
  assert.equal((await next()).resources?.[key]?.paused, true);
  await feed.return(undefined);
});

test("reports a replica as it is placed, pulls its image, starts and becomes ready", async () => {
  const waiting = (more: object) => ({
    phase: PodPhase.PENDING,
    containers: [{ name: "main", state: { $case: "waiting", value: { reason: "ImagePull", ...more } } }],
  });
  const statuses = [
    waiting({ message: "pulling web:1", pulledPercent: 12 }),
    waiting({ message: "pulling web:1", pulledPercent: 80 }),
    { phase: PodPhase.PENDING, containers: [{ name: "main", state: { $case: "running", value: {} } }] },
    { phase: PodPhase.RUNNING, ready: false, containers: [] },
    READY,
  ];
  const { fed, feed, next } = aFeed({ nodes: [aNode()], pods: [aPod()] });
  const shown: (string | undefined)[] = [];
  const receive = async (): Promise<void> => {
    const { state, tone, pulledPercent } = (await next()).pods?.["shop/web-1"] ?? {};
    shown.push([state, tone, pulledPercent].filter((it) => it !== undefined).join(" "));
  };
  await receive();
  for (const status of statuses) {
    fed.put({ pods: [aPod({ status: status as never })] });
    await receive();
  }
  assert.deepEqual(shown, [
    "Placed busy",
    "ImagePull busy 12",
    "ImagePull busy 80",
    "Starting busy",
    "NotReady busy",
    "Running good",
  ]);
  await feed.return(undefined);
});

test("sends a reason that changes without an event of the pod", async () => {
  const { reasons, feed, next } = aFeed({ pods: [aPod({ node: "" })] });
  assert.equal((await next()).pods?.["shop/web-1"]?.state, "Pending");
  reasons.set("uid-web-1", "insufficient cpu on 3 nodes");
  const row = (await next()).pods?.["shop/web-1"];
  assert.deepEqual([row?.state, row?.message], ["Unschedulable", "insufficient cpu on 3 nodes"]);
  await feed.return(undefined);
});

test("holds no rows and no timer without readers", async () => {
  const { feed, tables, clock, next, over } = aFeed({ nodes: [aNode()] });
  await next();
  assert.equal(tables.readers, 1);
  const waiting = feed.next();
  over.abort();
  await waiting;
  assert.equal(tables.readers, 0);
  assert.equal(clock.pending, 0);
});
