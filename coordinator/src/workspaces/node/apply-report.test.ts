import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkspacePhase } from "@forage/proto/core";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { WorkspaceReport } from "@forage/proto/forage/workspaces/v1/workspaces";
import { messageOf } from "../phase/message.ts";
import type { Observation } from "../phase/observation.ts";
import { WORKSPACES_SCHEMA } from "../settings.ts";
import { applyReport } from "./apply-report.ts";

const GIBIBYTE = 1024n ** 3n;
const OBSERVATION: Observation = {
  ...{ pod: undefined, node: undefined, activity: undefined, unschedulable: "" },
  ...{ nowMs: 0, upSinceMs: 0, since: (atMs) => atMs, settings: WORKSPACES_SCHEMA.parse({}) },
};

test("warns about content near its limit until it has shrunk enough, and ignores small changes", () => {
  const running = InstanceRecord.fromPartial({ phase: WorkspacePhase.RUNNING, restoredFrom: "restored" });
  const used = (record: InstanceRecord, percent: bigint, limit = 10n * GIBIBYTE): InstanceRecord =>
    applyReport(record, WorkspaceReport.fromPartial({ usedBytes: (limit * percent) / 100n }), limit);
  assert.equal(used(running, 94n), running);
  const near = used(running, 95n);
  assert.equal(
    messageOf(near, OBSERVATION),
    "the content takes nearly all of its limit of 10 GiB, or more: delete files, or start it with a larger class",
  );
  for (const percent of [150n, 91n, 90n]) assert.equal(used(near, percent), near);
  assert.equal(messageOf(used(near, 89n), OBSERVATION), "restored");
  assert.equal(applyReport(near, WorkspaceReport.fromPartial({}), 10n * GIBIBYTE), near);
});

test("gives no warning for content without a limit", () => {
  const record = InstanceRecord.fromPartial({});
  assert.equal(applyReport(record, WorkspaceReport.fromPartial({ usedBytes: 1_000n }), 0n), record);
});
