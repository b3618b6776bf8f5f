import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Hello, NodeReport, PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { ObjectRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod } from "../../test/support/entries.ts";
import { until } from "../../test/support/until.ts";
import { aView, opsOf } from "../../test/support/view.ts";
import { CoordinatorError } from "../errors.ts";
import { encodeRecord } from "../model/codec.ts";
import type { EventInput } from "../model/event.ts";
import { objectKey } from "../model/keys.ts";
import { type Store, StoreError, type StoreErrorCode } from "../store/index.ts";
import { ReportQueue } from "./report-queue.ts";

test("keeps the newest status of each pod while the disk is full, and stores it once there is room", async (t) => {
  const { state, disk, clock, queue, events } = await start(t, ["a", "b"]);
  disk.error = "NO_SPACE";
  queue.putStatuses([said("a", "first"), said("b", "first")]);
  await until("a write has failed", () => queue.unwritten === 2);
  queue.putStatuses([said("a", "second")]);
  queue.putStatuses([said("a", "third")]);
  assert.equal(queue.unwritten, 2);
  disk.error = undefined;
  clock.advance(10_000);
  await until("all is stored", () => state.pod("shop", "b")?.status !== undefined);
  assert.equal(state.pod("shop", "a")?.status?.message, "third");
  assert.equal(state.pod("shop", "b")?.status?.message, "first");
  await until("the event is published", () => events.length === 2);
  assert.equal(queue.unwritten, 0);
  assert.deepEqual(
    events.map(({ reason, name }) => [reason, name]),
    [
      ["ReportsNotStored", "n1"],
      ["ReportsStored", "n1"],
    ],
  );
});

test("stores a status that arrives while an older one of its pod is being written", async (t) => {
  const { state, disk, queue } = await start(t, ["a"]);
  const gate = Promise.withResolvers<void>();
  disk.gate = gate.promise;
  const { tries } = disk;
  queue.putStatuses([said("a", "first")]);
  await until("it is being written", () => disk.tries > tries);
  queue.putStatuses([said("a", "second")]);
  gate.resolve();
  await until("the newer one is stored", () => state.pod("shop", "a")?.status?.message === "second", 10_000);
});

test("stores a node report that arrives while an older one is being written", async (t) => {
  const { state, disk, queue } = await start(t, []);
  const gate = Promise.withResolvers<void>();
  disk.gate = gate.promise;
  const { tries } = disk;
  const allocatable = (cpu: string) => NodeReport.fromPartial({ allocatable: { cpu } });
  queue.putReport(allocatable("1"));
  await until("it is being written", () => disk.tries > tries);
  queue.putReport(allocatable("2"));
  gate.resolve();
  await until("the newer one is stored", () => state.node("n1")?.report?.report?.allocatable.cpu === "2");
});

test("stores a claim removal that arrives while an older one is being written", async (t) => {
  const { store, state, disk, queue } = await start(t, []);
  const claim = { namespace: "shop", name: "data" };
  const name = { ...claim, kind: "claim" } as const;
  const order = (labels: Readonly<Record<string, string>>) => {
    const spec = { $case: "claim", value: { node: "n1", deleting: true } } as const;
    const record = ObjectRecord.fromPartial({ ...name, labels, spec });
    return store.txn([], [{ type: "put", key: objectKey(name), value: encodeRecord(ObjectRecord, record) }]);
  };
  await state.reached((await order({})).revision);
  const gate = Promise.withResolvers<void>();
  disk.gate = gate.promise;
  const { tries } = disk;
  queue.putClaimsRemoved([claim]);
  await until("it is being written", () => disk.tries > tries);
  // The node receives the changed order, and reports the removal again.
  await state.reached((await order({ changed: "yes" })).revision);
  queue.putClaimsRemoved([{ ...claim }]);
  gate.resolve();
  await until("the claim is removed", () => state.objects.get(name) === undefined);
});

test("retries as long as the stream lasts, with delays up to 5 s", async (t) => {
  const { disk, clock, queue, ended, events } = await start(t, ["a"]);
  disk.error = "NO_SPACE";
  const { pending } = clock;
  queue.putStatuses([said("a", "x")]);
  let tries = 1;
  for (const pauseMs of [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]) {
    await until("it waits", () => disk.tries === tries && clock.pending === pending + 1);
    clock.advance(pauseMs - 1);
    assert.equal(disk.tries, tries);
    clock.advance(1);
    tries++;
    await until("it has tried again", () => disk.tries === tries);
  }
  ended.abort();
  await queue.idle();
  assert.equal(clock.pending, pending);
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ["ReportsNotStored"],
    "one event for consecutive failures",
  );
});

test("a status that the store rejects doesn't affect those of other pods", async (t) => {
  const { state, disk, clock, queue } = await start(t, ["a", "b", "c"]);
  disk.refuses = "big";
  queue.putStatuses([said("a", "small"), said("b", "big"), said("c", "small")]);
  await until("the others are stored", () => state.pod("shop", "c")?.status !== undefined);
  assert.equal(state.pod("shop", "a")?.status?.message, "small");
  assert.equal(state.pod("shop", "b")?.status, undefined);
  clock.advance(10_000);
  await until("it is no longer tried", () => queue.unwritten === 0);
});

test("a write that is rejected after a rollback of the store doesn't end the stream", async (t) => {
  const history: { refusal: string | undefined } = { refusal: undefined };
  const { disk, queue, events, ended } = await start(t, ["a"], history);
  const gate = Promise.withResolvers<void>();
  disk.gate = gate.promise;
  const { tries } = disk;
  queue.putStatuses([said("a", "x")]);
  await until("it is being written", () => disk.tries > tries);
  history.refusal = "an old copy was put back";
  disk.failure = new CoordinatorError("FAILED_PRECONDITION", history.refusal);
  gate.resolve();
  ended.abort();
  await queue.idle();
  assert.deepEqual(events, []);
});

test("keeps no statuses of other nodes' pods", async (t) => {
  const { disk, queue } = await start(t, ["a"]);
  disk.error = "NO_SPACE";
  queue.putStatuses([said("a", "x"), said("elsewhere", "x"), said("unknown", "x")]);
  await until("a write has failed", () => queue.unwritten > 0);
  assert.equal(queue.unwritten, 1);
});

test("doesn't treat a pod that was stopped after the hello message as missing from it", async (t) => {
  const view = await aView(t, {
    nodes: [aNode()],
    pods: [aPod({ name: "a", stopping: true }), aPod({ name: "b" })],
  });
  const queue = queueOf(view, view.store, []);
  await view.store.txn([], opsOf({ pods: [aPod({ name: "b", stopping: true })] }));
  await until("b is stopping", () => view.state.pod("shop", "b")?.record.stoppingSince !== undefined);
  await queue.flush();
  assert.equal(view.state.pod("shop", "a"), undefined, "the node didn't report the pod");
  assert.ok(view.state.pod("shop", "b"));
});

test("discards reports of an old stream once the node has a newer stream", async (t) => {
  const view = await aView(t, { nodes: [aNode()], pods: [aPod({ name: "a" })] });
  const newer = { open: false };
  const queue = queueOf(view, view.store, [], () => newer.open);
  queue.putStatuses([said("a", "old")]);
  newer.open = true;
  await queue.flush();
  assert.equal(view.state.pod("shop", "a")?.status, undefined);
  newer.open = false;
  await queue.flush();
  assert.equal(view.state.pod("shop", "a")?.status?.message, "old");
});

test("writes no status if a newer stream began while the hello message was written", async (t) => {
  const view = await aView(t, { nodes: [aNode({ name: "n1" })], pods: [aPod({ name: "a" })] });
  const disk = new FaultyDisk(view.store);
  const gate = Promise.withResolvers<void>();
  disk.gate = gate.promise;
  let superseded = false;
  const hello = Hello.fromPartial({ pods: [said("a", "hello")] });
  const queue = queueOf(view, disk.store, [], () => superseded, hello);
  queue.putStatuses([said("a", "later")]);
  const flushed = queue.flush();
  await until("the hello is being written", () => disk.tries > 0);
  superseded = true;
  gate.resolve();
  await flushed;
  await view.state.reached((await view.store.txn([], [])).revision).catch(() => {});
  assert.notEqual(view.state.pod("shop", "a")?.status?.message, "later");
});

async function start(
  t: TestContext,
  pods: readonly string[],
  history: { readonly refusal: string | undefined } = { refusal: undefined },
) {
  const elsewhere = aPod({ name: "elsewhere", node: "n2" });
  const view = await aView(t, {
    nodes: [aNode(), aNode({ name: "n2" })],
    pods: [...pods.map((name) => aPod({ name })), elsewhere],
  });
  const disk = new FaultyDisk(view.store);
  const events: EventInput[] = [];
  const queue = queueOf(view, disk.store, events, undefined, undefined, history);
  const ended = new AbortController();
  queue.start(ended.signal, (error) => assert.fail(String(error)));
  t.after(async () => {
    ended.abort();
    await queue.idle();
  });
  await until("the hello is stored", () => queue.unwritten === 0);
  return { ...view, disk, queue, events, ended };
}

function queueOf(
  view: Awaited<ReturnType<typeof aView>>,
  store: Store,
  events: EventInput[],
  superseded = () => false,
  hello = Hello.fromPartial({}),
  history: { readonly refusal: string | undefined } = { refusal: undefined },
): ReportQueue {
  const log = pino({ level: "silent" });
  const recorder = { record: (event: EventInput) => events.push(event) };
  return new ReportQueue(
    { ...view, store, log, events: recorder, history },
    { node: "n1", hello, superseded },
  );
}

class FaultyDisk {
  error: StoreErrorCode | undefined;
  /** If set, each write fails with this error. */
  failure: Error | undefined;
  /** Writes that contain this text fail. */
  refuses: string | undefined;
  tries = 0;
  /** If set, each write waits until this promise resolves. */
  gate: Promise<void> | undefined;
  readonly store: Store;

  constructor(store: Store) {
    const txn: Store["txn"] = async (compares, ops) => {
      this.tries++;
      await this.gate;
      if (this.failure !== undefined) throw this.failure;
      if (this.error !== undefined) throw new StoreError(this.error, "by the test");
      const texts = ops.map((op) => (op.type === "put" ? Buffer.from(op.value).toString("latin1") : ""));
      const { refuses } = this;
      if (refuses !== undefined && texts.some((text) => text.includes(refuses)))
        throw new StoreError("TOO_LARGE", "by the test");
      return store.txn(compares, ops);
    };
    this.store = new Proxy(store, {
      get: (target, name) => {
        if (name === "txn") return txn;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }
}

function said(name: string, message: string): PodStatus {
  return PodStatus.fromPartial({ uid: `uid-${name}`, phase: PodPhase.RUNNING, ready: true, message });
}
