import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import { ActivityRecord, InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage } from "@forage/proto/forage/workspaces/v1/workspaces";
import { SETTINGS } from "../../../test/support/workspaces/simulated-life.ts";
import { ActingTime } from "../../acting-time/acting-time.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { advance } from "./advance.ts";
import type { Observation } from "./observation.ts";
import { deadlinesOf } from "./time-out.ts";

const HOUR_MS = 3_600_000;

const CASES: readonly { readonly name: string; readonly record: object; readonly isActive?: boolean }[] = [
  { name: "initialization", record: { phase: WorkspacePhase.PENDING } },
  { name: "startup", record: { phase: WorkspacePhase.CREATING } },
  { name: "use without activity", record: { phase: WorkspacePhase.RUNNING } },
  { name: "inactivity", record: { phase: WorkspacePhase.RUNNING }, isActive: true },
  { name: "headless work", record: { phase: WorkspacePhase.RUNNING, type: WorkspaceType.PREBUILD } },
];

for (const { name, record, isActive = false } of CASES)
  test(`does not count a stall of the process for a day as time for ${name}`, () => {
    const clock = new VirtualClock();
    const time = new ActingTime({ clock });
    clock.advance(HOUR_MS);
    const at = toTimestamp(clock.nowMs());
    const instance = InstanceRecord.fromPartial({ type: WorkspaceType.REGULAR, ...record, createdAt: at });
    const restMs = (): number => {
      const observation: Observation = {
        ...{ pod: undefined, node: undefined, unschedulable: "", settings: SETTINGS },
        activity: isActive ? ActivityRecord.fromPartial({ lastActivity: at }) : undefined,
        ...time.now(),
      };
      const ends = deadlinesOf(instance, observation).map(({ atMs }) => atMs);
      return Math.min(...ends) - clock.nowMs();
    };
    const beforeMs = restMs();
    clock.stall(24 * HOUR_MS);
    time.recordStall(24 * HOUR_MS);
    assert.equal(restMs(), beforeMs);
    assert.ok(beforeMs > 0);
    clock.advance(1_000);
    assert.equal(restMs(), beforeMs - 1_000);
  });

for (const { name, record, isActive = false } of CASES)
  test(`leaves time for ${name} when the clock is a day behind after a restart`, () => {
    const clock = new VirtualClock();
    const at = toTimestamp(clock.nowMs() + 24 * HOUR_MS);
    const instance = InstanceRecord.fromPartial({ type: WorkspaceType.REGULAR, ...record, createdAt: at });
    const observation: Observation = {
      ...{ pod: undefined, node: undefined, unschedulable: "", settings: SETTINGS },
      activity: isActive ? ActivityRecord.fromPartial({ lastActivity: at }) : undefined,
      ...new ActingTime({ clock }).now(),
    };
    for (const { atMs, activity } of deadlinesOf(instance, observation))
      assert.ok(atMs > clock.nowMs() + HOUR_MS / 3, activity);
  });

test("counts an interruption from its start, but only while the coordinator could act", () => {
  const clock = new VirtualClock({ startMs: HOUR_MS });
  const record = InstanceRecord.fromPartial({
    phase: WorkspacePhase.INTERRUPTED,
    createdAt: toTimestamp(0),
    interruptedSince: toTimestamp(HOUR_MS + 1_000),
  });
  const endOf = (time: ActingTime): number | undefined => {
    const observation: Observation = {
      ...{ pod: undefined, node: undefined, activity: undefined, unschedulable: "", settings: SETTINGS },
      ...time.now(),
    };
    return deadlinesOf(record, observation).find(({ activity }) => activity === "interruption")?.atMs;
  };
  const time = new ActingTime({ clock });
  clock.advance(10_000);
  assert.equal(endOf(time), HOUR_MS + 301_000);
  assert.equal(endOf(new ActingTime({ clock })), HOUR_MS + 310_000);
});

for (const jumpMs of [48 * HOUR_MS, -48 * HOUR_MS])
  test(`times out a start by elapsed time, and states the reason, when the wall clock jumps by ${jumpMs} ms`, () => {
    const clock = new VirtualClock();
    const time = new ActingTime({ clock });
    clock.advance(HOUR_MS);
    const record = InstanceRecord.fromPartial({
      phase: WorkspacePhase.INITIALIZING,
      createdAt: toTimestamp(clock.nowMs()),
      ...{ node: "n1", podCreated: true, contentStage: ContentStage.INITIALIZING },
      contentMessage: "the server is away",
    });
    const timeout = (): string => {
      const node = { ready: true, message: "", seen: true, revoked: false };
      const observation: Observation = {
        ...{ pod: undefined, node, activity: undefined, unschedulable: "", settings: SETTINGS },
        ...time.now(),
      };
      return advance({ ...record, podGone: true }, observation).conditions?.timeout ?? "";
    };
    // The coordinator checks its clock for steps this often.
    time.tick();
    clock.jumpWall(jumpMs);
    time.tick();
    clock.advance(HOUR_MS - 1_000);
    assert.equal(timeout(), "");
    clock.advance(1_000);
    assert.match(
      timeout(),
      /after startup .* took longer than .*; the content is not complete: the server is away$/,
    );
  });
