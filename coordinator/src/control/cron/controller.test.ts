import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { randomOf } from "@forage/common/random";
import { JobStatus, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aCronJobEntry } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { encodeRecord } from "../../model/codec.ts";
import type { EventInput } from "../../model/event.ts";
import { jobOf } from "../../model/job.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { type Store, StoreError } from "../../store/index.ts";
import { CronController } from "./controller.ts";

const LIMIT = { timeout: 180_000 };
const MINUTE_MS = 60_000;

test("starts each due run exactly once under random interruptions of the coordinator", {
  timeout: 120_000,
}, async (t) => {
  for (let seed = 0; seed < 20; seed++) {
    const random = randomOf(seed);
    const { view, events, restart, fail } = await start(t, { schedule: "*/5 * * * *" });
    const startMs = view.clock.nowMs();
    await until("it has begun", () => view.state.workloadStatuses.all().length === 1);
    for (let round = 0; round < 30; round++) {
      if (random.chance(0.3)) fail(random.below(3), random.chance(0.5));
      if (random.chance(0.2)) await restart(random.below(40) * MINUTE_MS);
      view.clock.advance(random.below(4 * MINUTE_MS));
      await until("it waits", () => view.clock.pending === 1);
    }
    fail(0, false);
    view.clock.advance(6 * MINUTE_MS);
    await until("the last is started", () => lastMs(view) > view.clock.nowMs() - 5 * MINUTE_MS);
    const names = events
      .filter(({ reason }) => reason === "CronRunStarted")
      .map(({ message }) => message.split(":")[0]);
    assert.equal(new Set(names).size, names.length, `seed ${seed}: none twice`);
    const due = runsOf(view).map(({ record }) => Number(record.owner?.scheduledFor?.seconds ?? 0n) * 1000);
    assert.ok(
      due.every((ms) => ms % (5 * MINUTE_MS) === 0 && ms > startMs - 5 * MINUTE_MS),
      `seed ${seed}`,
    );
    assert.equal(new Set(due).size, due.length, `seed ${seed}`);
  }
});

test(
  "creates runs as jobs with the cron job's labels and specification, annotated with their scheduled time",
  LIMIT,
  async (t) => {
    const { view } = await start(
      t,
      { schedule: "@hourly", jobConfig: { restartPolicy: "Never" } },
      { app: "shop" },
    );
    await until("it waits", () => view.clock.pending === 1);
    for (let minutes = 0; minutes < 60; minutes++) view.clock.advance(MINUTE_MS);
    await until("it is started", () => runsOf(view).length === 1);
    const [run] = runsOf(view);
    assert.deepEqual(run?.record.labels, { app: "shop" });
    assert.equal(run?.record.name, "nightly-60");
    const job = run && jobOf(run.record);
    assert.equal(job?.template.podConfig?.restartPolicy, "Never");
    assert.deepEqual(job?.template.podConfig?.annotations, {
      "batch.kubernetes.io/cronjob-scheduled-timestamp": "1970-01-01T01:00:00.000Z",
    });
  },
);

test("keeps the newest finished runs", LIMIT, async (t) => {
  const { view } = await start(t, { schedule: "* * * * *", successfulJobsHistoryLimit: 2 });
  await until("it waits", () => view.clock.pending === 1);
  for (let count = 1; count <= 4; count++) {
    view.clock.advance(MINUTE_MS);
    await until("it is started", () => lastMs(view) > view.clock.nowMs() - MINUTE_MS);
    await complete(view);
  }
  await until("two are left", () => runsOf(view).filter(({ record }) => !record.deleting).length === 2);
});

type View = Awaited<ReturnType<typeof aView>>;

function runsOf({ state }: View) {
  return state.resourcesOwnedBy("shop", "cron_job", "nightly");
}

function lastMs({ state }: View): number {
  const status = state.workloadStatuses.get(workloadStatusKey("shop", "cron_job", "nightly"))?.record.status;
  return status?.$case === "cronJob" ? Number(status.value.lastScheduledAt?.seconds ?? 0n) * 1000 : 0;
}

/** Completes all pods that have not ended. */
async function complete(view: View): Promise<void> {
  for (const { record } of runsOf(view)) {
    const key = workloadStatusKey("shop", "job", record.name);
    if (view.state.workloadStatuses.get(key) !== undefined) continue;
    const finishedAt = toTimestamp(view.clock.nowMs());
    const value = JobStatus.fromPartial({ run: jobOf(record)?.run ?? "", condition: "Complete", finishedAt });
    const status = WorkloadStatusRecord.fromPartial({
      namespace: "shop",
      kind: "job",
      name: record.name,
      status: { $case: "job", value },
    });
    const { revision } = await view.store.txn(
      [],
      [{ type: "put", key, value: encodeRecord(WorkloadStatusRecord, status) }],
    );
    await view.state.reached(revision);
  }
}

async function start(t: TestContext, spec: object, labels: Record<string, string> = {}) {
  const entry = aCronJobEntry({ spec, labels });
  const updatedAt = toTimestamp(1_000_000);
  const view = await aView(t, { resources: [{ ...entry, record: { ...entry.record, updatedAt } }] });
  const events: EventInput[] = [];
  let failures = 0;
  let afterEffect = false;
  const store: Store = Object.create(view.store, {
    txn: {
      value: async (...args: Parameters<Store["txn"]>) => {
        const failing = failures-- > 0;
        if (failing && !afterEffect) throw new StoreError("OVERLOADED", "too many wait");
        const result = await view.store.txn(...args);
        if (failing) throw new StoreError("OVERLOADED", "the answer was lost");
        return result;
      },
    },
  });
  const log = pino({ level: "silent" });
  const open = () =>
    new CronController({
      ...view,
      store,
      log,
      steps: { report: () => {} },
      events: { record: (event) => events.push(event) },
    });
  let controller = open();
  t.after(() => controller.close());
  const restart = async (downMs: number): Promise<void> => {
    await controller.close();
    view.clock.advance(downMs);
    controller = open();
  };
  const fail = (times: number, after: boolean): void => {
    failures = times;
    afterEffect = after;
  };
  return { view, events, restart, fail };
}
