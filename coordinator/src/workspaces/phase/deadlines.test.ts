import assert from "node:assert/strict";
import { test } from "node:test";
import { StopWorkspacePolicy, WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import { ActivityRecord, InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { toTimestamp } from "../../model/timestamp.ts";
import { WORKSPACES_SCHEMA } from "../settings.ts";
import { advance } from "./advance.ts";
import type { Observation } from "./observation.ts";
import { deadlinesOf } from "./time-out.ts";

const MINUTE_MS = 60_000;
const NOW_MS = 40 * 60 * MINUTE_MS;
const { PENDING, CREATING, RUNNING, INTERRUPTED, STOPPING } = WorkspacePhase;

type Change = Parameters<typeof InstanceRecord.fromPartial>[0];

interface Case {
  readonly what: string;
  readonly record: Change;
  readonly activity?: { readonly minutesAgo: number; readonly closed?: boolean };
  /** The deadline that comes first, in minutes from now. */
  readonly expected: readonly [activity: string, minutes: number];
}

/** The instance was created ten minutes ago, with the default times. */
const CASES: readonly Case[] = [
  { what: "without a node", record: { phase: PENDING }, expected: ["initialization", 20] },
  { what: "while it is made", record: { phase: CREATING }, expected: ["startup", 50] },
  {
    what: "before the first activity",
    record: { phase: RUNNING },
    expected: ["startup without activity", 50],
  },
  {
    what: "after the last activity",
    record: { phase: RUNNING },
    activity: { minutesAgo: 5 },
    expected: ["period of inactivity", 25],
  },
  {
    what: "with the time-out of the start request",
    record: { phase: RUNNING, spec: { timeout: "1h" } },
    activity: { minutesAgo: 5 },
    expected: ["period of inactivity", 55],
  },
  {
    what: "with the time-out of SetTimeout, which replaces that of the start request",
    record: { phase: RUNNING, spec: { timeout: "1h" }, customTimeout: "8m" },
    activity: { minutesAgo: 5 },
    expected: ["period of inactivity", 3],
  },
  {
    what: "after the user left",
    record: { phase: RUNNING },
    activity: { minutesAgo: 1, closed: true },
    expected: ["after being closed", 1],
  },
  {
    what: "after the user left, if SetTimeout was called",
    record: { phase: RUNNING, customTimeout: "45m", closedTimeoutOff: true },
    activity: { minutesAgo: 1, closed: true },
    expected: ["period of inactivity", 44],
  },
  {
    what: "while its node is away",
    record: { phase: INTERRUPTED, interruptedSince: toTimestamp(NOW_MS - MINUTE_MS) },
    activity: { minutesAgo: 5 },
    expected: ["interruption", 4],
  },
  {
    what: "of a prebuild",
    record: { phase: RUNNING, type: WorkspaceType.PREBUILD },
    expected: ["running the headless workspace", 50],
  },
  {
    what: "of an image build with a time-out of its own",
    record: { phase: RUNNING, type: WorkspaceType.IMAGEBUILD, spec: { timeout: "12m" } },
    expected: ["running the headless workspace", 2],
  },
];

for (const { what, record, activity, expected } of CASES)
  test(`returns the documented deadline of a workspace ${what}`, () => {
    const [first] = [...deadlinesOf(anInstance(record), anObservation(activity))].sort(
      (a, b) => a.atMs - b.atMs,
    );
    assert.deepEqual([first?.activity, ((first?.atMs ?? 0) - NOW_MS) / MINUTE_MS], expected);
  });

test("checks the lifetime first, even for a workspace in use", () => {
  const record = anInstance({ phase: RUNNING, createdAt: toTimestamp(NOW_MS - 37 * 60 * MINUTE_MS) });
  const { conditions, stop } = advance(record, anObservation({ minutesAgo: 31 }));
  assert.equal(
    conditions?.timeout,
    "workspace timed out after maximum lifetime (37h00m) took longer than 36h00m",
  );
  assert.equal(stop?.cause, "time-out");
});

test("returns no deadlines for a workspace that is stopping", () => {
  const stop = { cause: "request", policy: StopWorkspacePolicy.NORMALLY, at: toTimestamp(NOW_MS) };
  assert.deepEqual(deadlinesOf(anInstance({ phase: STOPPING, stop }), anObservation()), []);
});

function anInstance(change: Change): InstanceRecord {
  const createdAt = toTimestamp(NOW_MS - 10 * MINUTE_MS);
  return InstanceRecord.fromPartial({ id: "a", type: WorkspaceType.REGULAR, createdAt, ...change });
}

function anObservation(activity?: Case["activity"]): Observation {
  return {
    ...{ pod: undefined, node: undefined, unschedulable: "", nowMs: NOW_MS, upSinceMs: 0 },
    ...{ since: (atMs) => atMs, settings: WORKSPACES_SCHEMA.parse({ enabled: true }) },
    activity:
      activity &&
      ActivityRecord.fromPartial({
        lastActivity: toTimestamp(NOW_MS - activity.minutesAgo * MINUTE_MS),
        closed: activity.closed ?? false,
      }),
  };
}
