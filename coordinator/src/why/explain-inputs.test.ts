import assert from "node:assert/strict";
import { test } from "node:test";
import { JobStatus, ResourceRecord, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { aCronJobEntry } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { runResource } from "../control/cron/run-resource.ts";
import { encodeRecord } from "../model/codec.ts";
import { cronJobOf } from "../model/cron-job.ts";
import { jobOf } from "../model/job.ts";
import { resourceKey, workloadStatusKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { cronJobInput, type ExplainOptions } from "./explain-inputs.ts";

const NOW_MS = 600_000;

test("describes the runs of a cron job, the newest end first", () => {
  const world = new HandFedState();
  const cron = aCronJobEntry();
  world.put({ resources: [cron] });
  addRun(world, cron.record, "early", { condition: "Complete", finishedAt: toTimestamp(1_000) });
  addRun(world, cron.record, "late", {
    ...{ condition: "Failed", finishedAt: toTimestamp(2_000), message: "exited with code 1" },
  });
  addRun(world, cron.record, "now", undefined);
  const input = cronJobInput(cron, { state: world.state, nowMs: NOW_MS } as ExplainOptions);
  assert.deepEqual(input?.ended, [
    { name: "late", failed: true, message: "exited with code 1" },
    { name: "early", failed: false, message: "" },
  ]);
  assert.deepEqual(input.active, ["now"]);
  assert.deepEqual([input.suspended, input.deleting, input.nextMs], [false, false, 3_600_000]);
});

function addRun(
  world: HandFedState,
  owner: ResourceRecord,
  name: string,
  status: Parameters<typeof JobStatus.fromPartial>[0] | undefined,
): void {
  const cron = cronJobOf(owner);
  assert.ok(cron);
  const record = runResource(cron, owner, name, undefined, 0);
  const { namespace, kind } = record;
  const value = encodeRecord(ResourceRecord, record);
  world.write({ type: "put", key: resourceKey(namespace, kind, name), value });
  if (status === undefined) return;
  const run = jobOf(record)?.run ?? "";
  const stored = WorkloadStatusRecord.fromPartial({
    ...{ namespace, kind, name },
    status: { $case: "job", value: JobStatus.fromPartial({ ...status, run }) },
  });
  world.write({
    ...{ type: "put", key: workloadStatusKey(namespace, kind, name) },
    value: encodeRecord(WorkloadStatusRecord, stored),
  });
}
