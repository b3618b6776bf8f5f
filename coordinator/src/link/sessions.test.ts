import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { Hello, LogOptions, PodStatus, type SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { NamespaceRecord, PodStatusRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod, aWorkloadEntry } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { encodeRecord } from "../model/codec.ts";
import { namespaceKey, nodeKey, statusKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { type Session, Sessions } from "./sessions.ts";

const SILENT = pino({ level: "silent" });

test("replaces a node's session by a newer one, and ignores the end of the older one", (t) => {
  const sessions = start(t);
  const first = sessions.open("n1", Hello.fromPartial({ sessionId: "first" }));
  const second = sessions.open("n1", Hello.fromPartial({ sessionId: "second" }));
  assert.deepEqual([first.ended.signal.aborted, second.ended.signal.aborted], [true, false]);

  sessions.close(first);
  assert.equal(sessions.connected("n1"), true);
  sessions.close(second);
  assert.equal(sessions.connected("n1"), false);
});

test("limits log and exec requests that wait for one agent to 64", (t) => {
  const sessions = start(t);
  const logs = { $case: "logs", value: LogOptions.fromPartial({}) } as const;
  const request: SessionRequest = { sessionId: "s", podUid: "p1", container: "", kind: logs };
  assert.throws(() => sessions.request("n1", request), { code: "UNAVAILABLE" });
  const session = sessions.open("n1", Hello.fromPartial({}));
  for (let count = 0; count < 64; count++) sessions.request("n1", request);
  assert.throws(() => sessions.request("n1", request), { code: "RESOURCE_EXHAUSTED" });
  session.requests.splice(0);
  sessions.request("n1", request);
});

test("wakes nodes with pods of a namespace whose policy changed", (t) => {
  const { fed, wakes } = startWithPods(t);
  const key = namespaceKey("shop");
  const value = encodeRecord(NamespaceRecord, NamespaceRecord.fromPartial({ name: "shop" }));
  fed.write({ type: "put", key, value });
  assert.deepEqual(wakes(), ["n1"]);
  fed.remove(key);
  assert.deepEqual(wakes(), ["n1"], "the default policy counts again");
});

test("wakes nodes with pods of a workload that another role has applied", (t) => {
  const { fed, wakes } = startWithPods(t);
  const resource = aWorkloadEntry({ name: "web", namespace: "shop" });
  const withRole = (policyRole: string) => ({ ...resource, record: { ...resource.record, policyRole } });
  fed.put({ resources: [withRole("editor")] });
  wakes();
  fed.put({ resources: [withRole("editor")] });
  assert.deepEqual(wakes(), [], "nothing that nodes receive has changed");
  fed.put({ resources: [withRole("admin")] });
  assert.deepEqual(wakes(), ["n1"]);
});

test("wakes a pod's node when the pod's record changes, but not for its status", (t) => {
  const { fed, wakes } = startWithPods(t);
  wakes();
  const observedAt = toTimestamp(1);
  const record = {
    node: "n1",
    status: PodStatus.fromPartial({ ready: true }),
    observedAt,
    readySince: undefined,
  };
  fed.write({ type: "put", key: statusKey("shop", "web-1"), value: encodeRecord(PodStatusRecord, record) });
  assert.equal(fed.state.pod("shop", "web-1")?.status?.ready, true);
  assert.deepEqual(wakes(), []);
  fed.put({ pods: [aPod({ name: "web-1", namespace: "shop", node: "n1", stopping: true })] });
  assert.deepEqual(wakes(), ["n1"]);
});

test("ends sessions after three missing heartbeats, without counting time in which the process was blocked", (t) => {
  const { sessions, session, fed, clock, stalls } = startWithPods(t);
  clock.stall(60_000);
  clock.advance(0);
  assert.equal(session.ended.signal.aborted, false);
  assert.equal(fed.state.node("n1")?.health.ready, true);
  assert.equal(sessions.stalls, 1);
  assert.equal(stalls.length, 1);
  assert.ok((stalls[0] ?? 0) > 55_000);
  clock.advance(7_400);
  assert.equal(session.ended.signal.aborted, false);
  clock.advance(2_500);
  assert.equal(session.ended.signal.aborted, true, "it was silent since");
});

test("ends each session when its own heartbeats are missing, whenever it was opened", (t) => {
  const { sessions, session: first, clock } = startWithPods(t);
  const aborted = (...all: readonly Session[]): boolean[] => all.map(({ ended }) => ended.signal.aborted);
  clock.advance(5_000);
  const second = sessions.open("n2", Hello.fromPartial({}));
  sessions.recordContact(first);
  clock.advance(5_000);
  sessions.recordContact(second);
  assert.deepEqual(aborted(first, second), [false, false]);
  clock.advance(5_000);
  assert.deepEqual(aborted(first, second), [true, false]);
  const third = sessions.open("n1", Hello.fromPartial({}));
  clock.advance(5_000);
  assert.deepEqual(aborted(second, third), [true, false]);
  clock.advance(5_000);
  assert.deepEqual(aborted(third), [true]);
  for (const session of [second, third]) sessions.close(session);
  clock.advance(5_000);
  const fourth = sessions.open("n1", Hello.fromPartial({}));
  clock.advance(10_000);
  assert.deepEqual(aborted(fourth), [true], "no session was open before");
});

test("gives nodes the grace period of a start after the process was blocked", (t) => {
  const { sessions, session, fed, clock } = startWithPods(t);
  clock.stall(60_000);
  clock.advance(0);
  sessions.close(session);
  clock.advance(14_900);
  assert.equal(fed.state.node("n1")?.health.ready, true);
  clock.advance(2_000);
  assert.equal(fed.state.node("n1")?.health.ready, false);
});

test("sends a longer interval to agents of a grown fleet, and waits for three of these intervals", async (t) => {
  const nodes = Array.from({ length: 1_250 }, (_, index) => aNode({ name: `n${index}` }));
  const fed = new HandFedState({ nodes });
  const clock = new VirtualClock();
  const sessions = new Sessions({ ...{ state: fed.state, clock, heartbeatIntervalMs: 2_500 }, log: SILENT });
  t.after(() => sessions.stop());
  const session = sessions.open("n0", Hello.fromPartial({}));
  assert.deepEqual([session.heartbeatIntervalMs, sessions.longerInterval(session)], [2_500, undefined]);
  fed.put({ nodes: [aNode({ name: "further" })] });
  await session.wake.wait(new AbortController().signal);
  assert.deepEqual([sessions.longerInterval(session), sessions.longerInterval(session)], [5_000, undefined]);
  assert.equal(sessions.open("n1", Hello.fromPartial({})).heartbeatIntervalMs, 5_000);
  sessions.recordContact(session);
  clock.advance(14_900);
  assert.deepEqual([fed.state.node("n0")?.health.ready, session.ended.signal.aborted], [true, false]);
  clock.advance(2_600);
  assert.deepEqual([fed.state.node("n0")?.health.ready, session.ended.signal.aborted], [false, true]);
  fed.remove(nodeKey("further"));
  assert.equal(sessions.longerInterval(session), undefined, "no interval gets shorter on a connection");
  assert.equal(sessions.heartbeatIntervalMs, 2_500);
});

/** Returns the sessions of two nodes. `n1` has a pod of `shop/web`, and `n2` one of another namespace. */
function startWithPods(t: TestContext) {
  const nodes = [aNode({ name: "n1" }), aNode({ name: "n2" })];
  const pods = [
    aPod({ name: "web-1", namespace: "shop", node: "n1" }),
    aPod({ name: "web-2", namespace: "other", node: "n2" }),
  ];
  const fed = new HandFedState({ nodes, pods });
  const clock = new VirtualClock();
  const stalls: number[] = [];
  const sessions = new Sessions({
    state: fed.state,
    clock,
    log: SILENT,
    heartbeatIntervalMs: 2_500,
    onStall: (stalledMs) => stalls.push(stalledMs),
  });
  t.after(() => sessions.stop());
  const open = nodes.map(({ name }) => sessions.open(name, Hello.fromPartial({ sessionId: name })));
  const wakes = (): string[] =>
    open.flatMap((session) => {
      const woken = session.podsChanged;
      session.podsChanged = false;
      return woken ? [session.node] : [];
    });
  assert.deepEqual(wakes(), ["n1", "n2"]);
  return { sessions, session: open[0] as Session, fed, clock, stalls, wakes };
}

function start(t: TestContext): Sessions {
  const { state } = new HandFedState({ nodes: [aNode({ name: "n1" })] });
  const sessions = new Sessions({
    state,
    clock: new VirtualClock(),
    log: SILENT,
    heartbeatIntervalMs: 2_500,
  });
  t.after(() => sessions.stop());
  return sessions;
}
