import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspacePhase, WorkspaceType } from "@forage/proto/core";
import { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { ContentStage, TransferKind, TransferState } from "@forage/proto/forage/workspaces/v1/workspaces";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { WORKSPACES_SCHEMA } from "../settings.ts";
import { lastBackupText, messageOf, olderBackupText, unfinishedContentText } from "./message.ts";
import type { Observation } from "./observation.ts";

const { PENDING, CREATING, INITIALIZING, RUNNING, INTERRUPTED, STOPPING, STOPPED } = WorkspacePhase;
type Change = Parameters<typeof InstanceRecord.fromPartial>[0];

const SAVED_AT_MS = Date.UTC(2030, 0, 2, 3, 4, 5);
const SAVED = "2030-01-02T03:04:05.000Z";
const ARCHIVE = { object: "a" };
const backup = (kind: TransferKind, finishedAtMs = SAVED_AT_MS) => ({
  ...{ id: "b", kind, archive: ARCHIVE, finishedAt: toTimestamp(finishedAtMs) },
});
const UNSAVED: Change = { node: "a1", podCreated: true, podGone: true, contentEverReady: true };
const AWAY: Partial<Observation> = {
  node: { ready: false, message: "no heartbeat", seen: true, revoked: false },
};
const HERE: Partial<Observation> = { node: { ready: true, message: "", seen: true, revoked: false } };

const MESSAGES: readonly (readonly [what: string, Change, Partial<Observation>, message: string])[] = [
  ["that waits for the scheduler", { phase: PENDING }, {}, "waits for a node"],
  ["that fits no node", { phase: PENDING }, { unschedulable: "no memory" }, "waits for a node: no memory"],
  [
    "without content",
    { phase: INITIALIZING, contentStage: ContentStage.INITIALIZING },
    {},
    "prepares the content",
  ],
  [
    "whose content waits",
    { phase: INITIALIZING, contentStage: ContentStage.INITIALIZING, contentMessage: "git is away" },
    waiting("pulls the image"),
    "git is away",
  ],
  ["without a container", { phase: CREATING }, {}, "creates the container"],
  ["whose container waits without a message", { phase: CREATING }, waiting(""), "creates the container"],
  [
    "whose image is pulled",
    { phase: CREATING },
    waiting("pulls the image"),
    "ContainerCreating: pulls the image",
  ],
  [
    "with restored content",
    { phase: CREATING, contentStage: ContentStage.READY, restoredFrom: "restored from a backup" },
    {},
    "restored from a backup",
  ],
  [
    "that failed",
    { phase: CREATING, node: "a1", conditions: { failed: "no such image" } },
    AWAY,
    "no such image",
  ],
  ["that starts on a node that went away", { phase: CREATING, node: "a1" }, AWAY, unavailable("")],
  ["that runs", { phase: RUNNING, node: "a1", restoredFrom: "restored" }, HERE, "restored"],
  ["whose node left the cluster", { phase: RUNNING, node: "a1", restoredFrom: "restored" }, {}, "restored"],
  [
    "whose content nears its limit",
    { phase: RUNNING, node: "a1", contentNearLimitBytes: 5n * 1024n ** 3n + 1024n ** 3n / 2n },
    HERE,
    "the content takes nearly all of its limit of 5.5 GiB, or more: delete files, or start it with a larger class",
  ],
  ["on a node that went away", { phase: RUNNING, node: "a1" }, AWAY, unavailable("")],
  [
    "with content on a node that went away",
    { phase: INTERRUPTED, node: "a1", contentEverReady: true },
    AWAY,
    unavailable("; there is no backup of it"),
  ],
  [
    "with saved content on a node that went away",
    { phase: INTERRUPTED, node: "a1", contentEverReady: true, contentSafe: true },
    AWAY,
    unavailable(""),
  ],
  ["whose container stops", { phase: STOPPING, ...UNSAVED, podGone: false }, HERE, "stops the container"],
  ["whose content is saved", { phase: STOPPING, ...UNSAVED }, HERE, "saves the content"],
  [
    "whose content could not be saved yet",
    {
      ...{ phase: STOPPING, ...UNSAVED },
      transfers: [{ id: "final", state: TransferState.RETRYING, message: "the store is full" }],
    },
    HERE,
    "saves the content; the last try failed: the store is full",
  ],
  [
    "whose content is deleted",
    { phase: STOPPING, ...UNSAVED, contentSafe: true },
    HERE,
    "deletes the content on its node",
  ],
  [
    "that stops on a node that went away",
    { phase: STOPPING, ...UNSAVED, contentSafe: true },
    AWAY,
    unavailable(""),
  ],
  ["that ended", { phase: STOPPED, ...UNSAVED, contentSafe: true }, {}, ""],
  [
    "whose content was lost",
    { phase: STOPPED, ...UNSAVED, nodeLost: true },
    {},
    "the content was lost with node a1; there is no backup of it",
  ],
  ["whose saved content was lost", { phase: STOPPED, ...UNSAVED, nodeLost: true, contentSafe: true }, {}, ""],
  ["whose node was lost before there was content", { phase: STOPPED, node: "a1", nodeLost: true }, {}, ""],
  [
    "whose content was discarded",
    { phase: STOPPED, contentDiscarded: true, contentKept: true },
    {},
    "the content was discarded on request",
  ],
  [
    "whose content is kept",
    { phase: STOPPED, ...UNSAVED, contentKept: true },
    {},
    "the content was not saved and stays on node a1: see `forage workspace content ls`",
  ],
];

for (const [what, change, observation, message] of MESSAGES)
  test(`describes the state of a workspace ${what}`, () => {
    assert.equal(messageOf(anInstance(change), anObservation(observation)), message);
  });

test("limits a message to 1,000 characters", () => {
  const record = anInstance({ phase: CREATING, conditions: { failed: "x".repeat(1_001) } });
  assert.equal(messageOf(record, anObservation({})).length, 1_000);
});

test("names the last archive that is not a snapshot, or else the restored one, as the last backup", () => {
  const lastOf = (change: Change): string => lastBackupText(anInstance(change));
  const of = (time: string): string => `the last backup is of ${time}`;
  const restore = { createdAt: toTimestamp(0) };
  const { BACKUP, SNAPSHOT } = TransferKind;
  assert.equal(lastOf({}), "there is no backup of it");
  assert.equal(lastOf({ restore }), of("1970-01-01T00:00:00.000Z"));
  assert.equal(lastOf({ restore, transfers: [backup(BACKUP)] }), of(SAVED));
  assert.equal(lastOf({ transfers: [backup(BACKUP, 0), backup(BACKUP), backup(SNAPSHOT, 1)] }), of(SAVED));
  assert.equal(
    lastOf({ transfers: [backup(BACKUP), { id: "open", kind: BACKUP, archive: ARCHIVE }] }),
    of(SAVED),
  );
  assert.equal(
    lastOf({ transfers: [backup(BACKUP), { id: "failed", kind: BACKUP, finishedAt: toTimestamp(1) }] }),
    of(SAVED),
  );
});

test("offers an older backup only to a start that restores one", () => {
  assert.equal(olderBackupText(anInstance({})), "");
  assert.match(olderBackupText(anInstance({ restore: {} })), /to restore an older backup/);
});

test("names the reason why content was incomplete when a start times out", () => {
  const { INITIALIZING: OPEN, READY } = ContentStage;
  const textOf = (contentStage: ContentStage, contentMessage: string): string =>
    unfinishedContentText(anInstance({ contentStage, contentMessage }));
  assert.equal(textOf(OPEN, "git is away"), "; the content is not complete: git is away");
  assert.equal(textOf(OPEN, ""), "");
  assert.equal(textOf(READY, "git was away"), "");
});

function unavailable(rest: string): string {
  return `node a1 is unavailable: no heartbeat${rest}`;
}

function waiting(message: string): Partial<Observation> {
  const state = { $case: "waiting" as const, value: { reason: "ContainerCreating", message } };
  const status = PodStatus.fromPartial({ containers: [{ name: "workspace", state }] });
  return { pod: { status } as PodEntry };
}

function anInstance(change: Change): InstanceRecord {
  return InstanceRecord.fromPartial({ id: "a", type: WorkspaceType.REGULAR, ...change });
}

function anObservation(change: Partial<Observation>): Observation {
  return {
    ...{ pod: undefined, node: undefined, activity: undefined, unschedulable: "", nowMs: 0, upSinceMs: 0 },
    ...{ since: (atMs) => atMs, settings: WORKSPACES_SCHEMA.parse({ enabled: true }), ...change },
  };
}
