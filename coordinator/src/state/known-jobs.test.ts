import assert from "node:assert/strict";
import { test } from "node:test";
import { aJobEntry } from "../../test/support/entries.ts";
import { jobOf } from "../model/job.ts";
import { KnownJobs } from "./known-jobs.ts";

const aRecord = (jobConfig: object) =>
  aJobEntry({ spec: { container: { name: "main", image: "app:v1" }, jobConfig } }).record;

test("a job is derived again only for another record, or after another run has begun", () => {
  const jobs = new KnownJobs();
  const before = aRecord({});
  const after = aRecord({ parallelism: 2 });
  const first = jobs.of(before);
  assert.equal(jobs.of(before), first);
  const run = first?.run ?? "";
  assert.deepEqual(jobs.of(after, run), jobOf(after, run));
  assert.deepEqual(jobs.of(after), jobOf(after));
  assert.notEqual(jobs.of(after)?.run, jobs.of(after, run)?.run);
});
