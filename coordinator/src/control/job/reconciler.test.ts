import assert from "node:assert/strict";
import { test } from "node:test";
import { JobStatus, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aJobEntry, aNode } from "../../../test/support/entries.ts";
import { aView } from "../../../test/support/view.ts";
import { encodeRecord } from "../../model/codec.ts";
import { jobOf } from "../../model/job.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import type { Store } from "../../store/index.ts";
import { jobStatusOf } from "./job-input.ts";
import { JobReconciler } from "./reconciler.ts";

test("creates no pods from a status that another write has replaced", async (t) => {
  const resource = aJobEntry();
  const { store, state, clock } = await aView(t, { resources: [resource], nodes: [aNode()] });
  const key = workloadStatusKey("shop", "job", "migrate");
  const run = jobOf(resource.record)?.run ?? "";
  const write = async (condition: string): Promise<number> => {
    const status = { $case: "job", value: JobStatus.fromPartial({ run, condition }) } as const;
    const record = WorkloadStatusRecord.fromPartial({
      namespace: "shop",
      kind: "job",
      name: "migrate",
      status,
    });
    const { revision } = await store.txn(
      [],
      [{ type: "put", key, value: encodeRecord(WorkloadStatusRecord, record) }],
    );
    return revision;
  };
  await state.reached(await write(""));
  const txn: Store["txn"] = async (compares, ops) => {
    // Ends the job between the plan and its write.
    await write("Complete");
    return store.txn(compares, ops);
  };
  let names = 0;
  const jobs = new JobReconciler({
    store: { ...store, txn, revision: store.revision } as Store,
    state,
    clock,
    log: pino({ level: "silent" }),
    events: { record: () => {} },
    steps: { report: () => {} },
    randomName: (length) => `${names++}`.padStart(length, "x"),
    held: () => false,
  });
  await assert.rejects(jobs.reconcile("shop/job/migrate"), { code: "CONFLICT" });
  assert.equal(state.pods().length, 0);
  assert.equal(jobStatusOf(state, "shop", "migrate")?.condition, "Complete");
});

test("creates pods with different names, even if random names repeat", async (t) => {
  const resource = aJobEntry({ spec: { jobConfig: { completions: 3, parallelism: 3 } } });
  const { store, state, clock } = await aView(t, { resources: [resource], nodes: [aNode()] });
  const names = ["aaaaa", "aaaaa", "bbbbb", "aaaaa", "bbbbb"];
  let uids = 0;
  const jobs = new JobReconciler({
    ...{ store, state, clock },
    log: pino({ level: "silent" }),
    events: { record: () => {} },
    steps: { report: () => {} },
    randomName: (length) => (length === 5 ? (names.shift() ?? "ccccc") : `${uids++}`.padStart(length, "x")),
    held: () => false,
  });
  await jobs.reconcile("shop/job/migrate");
  await jobs.reconcile("shop/job/migrate");
  assert.deepEqual(
    state
      .pods()
      .map(({ record }) => record.name.slice(-5))
      .toSorted(),
    ["aaaaa", "bbbbb", "ccccc"],
  );
});
