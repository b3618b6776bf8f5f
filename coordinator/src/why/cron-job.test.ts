import assert from "node:assert/strict";
import { test } from "node:test";
import { type CronJobInput, type EndedRun, explainCronJob } from "./cron-job.ts";

test("treats a cron job as healthy if its newest run succeeded, regardless of earlier failures", () => {
  const { healthy, summary } = explainCronJob(aCronJob({ ended: [succeeded("b"), failed("a")] }));
  assert.equal(healthy, true);
  assert.equal(summary, "cron_job/nightly is healthy; next run at 2030-01-01T00:00:00.000Z");
});

test("treats a cron job as unhealthy if every run fails, and names the newest run", () => {
  const { healthy, causes } = explainCronJob(aCronJob({ ended: [failed("c"), failed("b"), failed("a")] }));
  assert.equal(healthy, false);
  assert.equal(causes[0]?.message, "its last 3 runs failed, the newest, c: c exited with code 1");
  assert.match(causes[0]?.advice ?? "", /^forage why job\/c --namespace shop/);
});

test("counts only failures after the newest success", () => {
  const { causes } = explainCronJob(aCronJob({ ended: [failed("c"), succeeded("b"), failed("a")] }));
  assert.match(causes[0]?.message ?? "", /^its last run failed, the newest, c/);
});

test("treats a suspended cron job as unhealthy", () => {
  const { healthy, causes, summary } = explainCronJob(aCronJob({ suspended: true, nextMs: undefined }));
  assert.equal(healthy, false);
  assert.deepEqual(
    causes.map(({ reason }) => reason),
    ["Suspended"],
  );
  assert.doesNotMatch(summary, /next run|never due/);
});

test("treats a cron job without runs as healthy", () => {
  assert.equal(explainCronJob(aCronJob({ active: ["a"] })).healthy, true);
});

function aCronJob(parts: Partial<CronJobInput>): CronJobInput {
  return {
    namespace: "shop",
    name: "nightly",
    deleting: false,
    suspended: false,
    nextMs: Date.UTC(2030, 0, 1),
    active: [],
    ended: [],
    ...parts,
  };
}

function failed(name: string): EndedRun {
  return { name, failed: true, message: `${name} exited with code 1` };
}

function succeeded(name: string): EndedRun {
  return { name, failed: false, message: "" };
}
