import assert from "node:assert/strict";
import { test } from "node:test";
import { aJobEntry } from "../../test/support/entries.ts";
import { jobOf } from "./job.ts";

const job = (jobConfig: object, begun = "", image = "app:v1") => {
  const { record } = aJobEntry({ spec: { container: { name: "main", image }, jobConfig } });
  const found = jobOf(record, begun);
  assert.ok(found);
  return found;
};

test("a change of parallelism begins no new run, with or without completions", () => {
  for (const [before, after] of [
    [{}, { parallelism: 2 }],
    [{ parallelism: 1 }, { parallelism: 5 }],
    [{ parallelism: 5 }, { parallelism: 1 }],
    [{ completions: 4 }, { completions: 4, parallelism: 3 }],
  ] as const) {
    const { run } = job(before);
    assert.equal(job(after, run).run, run, JSON.stringify([before, after]));
  }
});

test("a change of the content or of completions begins a new run", () => {
  const { run } = job({});
  assert.notEqual(job({}, run, "app:v2").run, run);
  assert.notEqual(job({ completions: 2 }, run).run, run);
  assert.notEqual(job({ parallelism: 2 }).run, run, "where none has begun, each has its own");
});
