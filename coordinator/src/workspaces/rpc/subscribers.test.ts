import assert from "node:assert/strict";
import { test } from "node:test";
import { type SubscribeResponse, WorkspacePhase } from "@forage/proto/core";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { pino } from "pino";
import type { Sink } from "../../rpc/push.ts";
import { instanceWrite } from "../records.ts";
import { WorkspaceView } from "../view.ts";
import { Subscribers, type SubscribersOptions } from "./subscribers.ts";

/** Returns a view to which the test adds changes, and its subscribers. */
function aView(limits: Partial<SubscribersOptions> = {}) {
  const view = new WorkspaceView(pino({ level: "silent" }));
  const statuses = {
    statusOf: (record: InstanceRecord) => ({
      id: record.id,
      statusVersion: record.statusVersion,
      phase: record.phase,
    }),
  };
  const subscribers = new Subscribers({ view, statuses: statuses as never, ...limits });
  let revision = 0;
  const put = (id: string, phase: WorkspacePhase): void => {
    const op = instanceWrite(
      view.instance(id)?.record,
      InstanceRecord.fromPartial({ ...view.instance(id)?.record, id, phase }),
      1,
    );
    if (op.type !== "put") return;
    revision += 1;
    const at = { createRevision: revision, modRevision: revision, version: 1 };
    view.apply([{ type: "put", record: { key: op.key, value: op.value, ...at } }], revision);
  };
  return { subscribers, put };
}

/** A transport that accepts messages only when the test allows it. */
class HeldSink implements Sink<SubscribeResponse> {
  readonly received: SubscribeResponse[] = [];
  failure: unknown;
  #taken: (() => void) | undefined;

  send(message: SubscribeResponse, taken: () => void): void {
    this.received.push(message);
    this.#taken = taken;
  }

  fail(error: unknown): void {
    this.failure = error;
  }

  /** Accepts all messages. */
  drain(): void {
    for (let taken = this.#taken; taken !== undefined; taken = this.#taken) {
      this.#taken = undefined;
      taken();
    }
  }
}

const ALL = { mustMatch: undefined };

test("sends a slow subscriber only the newest status of each workspace, including STOPPED", () => {
  const { subscribers, put } = aView();
  put("a", WorkspacePhase.PENDING);
  put("b", WorkspacePhase.PENDING);
  const sink = new HeldSink();
  subscribers.add(ALL, true, sink);
  for (const phase of [
    WorkspacePhase.CREATING,
    WorkspacePhase.RUNNING,
    WorkspacePhase.STOPPING,
    WorkspacePhase.STOPPED,
  ])
    put("a", phase);
  put("b", WorkspacePhase.RUNNING);
  assert.equal(sink.received.length, 1);
  sink.drain();
  const seen = sink.received.map(({ status, header }) => [
    status?.id,
    status?.phase,
    header["forage-snapshot-remaining"] ?? "",
  ]);
  assert.deepEqual(seen, [
    ["a", WorkspacePhase.PENDING, "1"],
    ["b", WorkspacePhase.RUNNING, "0"],
    ["a", WorkspacePhase.STOPPED, ""],
  ]);
});

test("fails the stream of a subscriber that never reads once its pending updates exceed the limit", () => {
  const { subscribers, put } = aView({ maxPending: 3 });
  const sink = new HeldSink();
  subscribers.add(ALL, true, sink);
  for (const id of ["a", "b", "c", "d", "e"]) put(id, WorkspacePhase.PENDING);
  assert.match(String(sink.failure), /3 unread updates/);
});

test("sends every status to each of a thousand subscribers, and refuses one more than the limit", () => {
  const { subscribers, put } = aView({ maxSubscribers: 1_000 });
  const sinks = Array.from({ length: 1_000 }, () => new HeldSink());
  for (const sink of sinks) subscribers.add(ALL, true, sink);
  assert.throws(() => subscribers.add(ALL, true, new HeldSink()), { code: "RESOURCE_EXHAUSTED" });
  for (const phase of [WorkspacePhase.PENDING, WorkspacePhase.RUNNING]) {
    put("a", phase);
    for (const sink of sinks) sink.drain();
  }
  assert.ok(sinks.every(({ received }) => received.length === 2));
});
