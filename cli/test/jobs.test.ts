import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import { ago, aResource } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {};
});

describe("jobs", () => {
  test("lists jobs with their results", async () => {
    const resources = [
      aJob("migrate", { condition: "Complete", succeeded: 1, finishedAt: ago(60) }),
      aJob("resize", {
        completions: 5,
        succeeded: 2,
        active: 2,
        failed: 1,
        startedAt: ago(3600),
        finishedAt: undefined,
      }),
      {
        ...aJob("nightly-1", { condition: "Failed", failed: 7, finishedAt: ago(60) }),
        owner: "cron_job/nightly",
      },
      aResource(),
    ];
    fake.answers.listResources = () => ({ resources });
    const { stdout } = await forage("job ls");
    assert.deepEqual(stdout.split("\n"), [
      "NAME       STATUS    COMPLETED  ACTIVE  FAILED  DURATION   AGE  OWNER",
      "migrate    Complete        1/1       0       0        1m  2h2m  -",
      "resize     Running         2/5       2       1        1h  2h2m  -",
      "nightly-1  Failed          0/1       0       7        1m  2h2m  cron_job/nightly",
      "",
    ]);
  });

  test("lists cron jobs with their last and next runs, and whether they are suspended", async () => {
    const cronJob = {
      schedule: "0 3 * * *",
      timezone: "UTC",
      suspended: true,
      active: ["nightly-2"],
      lastScheduledAt: ago(3600),
      lastSuccessfulAt: ago(7200),
      nextAt: { seconds: 1_893_456_000n, nanos: 0 },
    };
    fake.answers.listResources = () => ({
      resources: [{ ...aResource(), kind: "cron_job", name: "nightly", cronJob }],
    });
    const { stdout } = await forage("get cron_job");
    assert.deepEqual(stdout.split("\n"), [
      "NAME     SCHEDULE         SUSPENDED  ACTIVE  LAST  LAST SUCCESS  NEXT                   AGE",
      "nightly  0 3 * * * (UTC)  yes             1    1h            2h  2030-01-01T00:00:00Z  2h2m",
      "",
    ]);
  });

  test("describes a job with its last failure", async () => {
    const lastFailure = {
      pod: "migrate-x",
      node: "n1",
      container: "main",
      exitCode: 3,
      signal: 0,
      reason: "Error",
      message: "no such table\n",
      at: { seconds: 0n, nanos: 0 },
    };
    fake.answers.listResources = () => ({ resources: [aJob("migrate", { failed: 1, lastFailure })] });
    fake.answers.listPods = () => ({ kept: [], pods: [] });
    const { stdout, stderr } = await forage("describe job/migrate");
    assert.equal(stderr, "");
    assert.match(stdout, /Status:\s+Running\n/);
    assert.match(stdout, /Failed:\s+1, at most 6\n/);
    assert.match(
      stdout,
      /Last failure:\s+pod migrate-x on n1, 1970-01-01T00:00:00Z: container main exited with code 3 \(Error\)\n\s+no such table\n/,
    );
  });
});

describe("job run", () => {
  test("starts a run of a cron job", async () => {
    fake.answers.runCronJob = ({ name }) => ({ job: { namespace: "default", kind: "job", name } });
    const { stdout, exitCode } = await forage("job run --from-cron nightly --name now");
    assert.deepEqual([stdout, exitCode], ["job/now started\n", 0]);
    assert.deepEqual(fake.requests("runCronJob"), [
      { namespace: "default", cronJob: "nightly", name: "now" },
    ]);
    assert.match((await forage("job run")).stderr, /--from-cron NAME/);
  });

  test("waits for the end of the run, and exits with its result", async () => {
    for (const [condition, exitCode] of [
      ["Complete", 0],
      ["Failed", 1],
    ] as const) {
      let looks = 0;
      fake.answers.runCronJob = () => ({ job: { namespace: "default", kind: "job", name: "now" } });
      fake.answers.listResources = () => ({
        resources: [aJob("now", looks++ === 0 ? {} : { condition, message: "so it is" })],
      });
      const result = await forage("job run --from-cron nightly --wait");
      assert.equal(result.exitCode, exitCode);
      assert.deepEqual(result.stdout.split("\n"), [
        "job/now Running 0/1 completed",
        `job/now ${condition} 0/1 completed: so it is`,
        "",
      ]);
    }
  });
});

function aJob(name: string, job: Partial<NonNullable<Resource["job"]>> = {}): Resource {
  return aResource({
    kind: "job",
    name,
    rolloutId: "",
    job: {
      completions: 1,
      parallelism: 1,
      active: 0,
      ready: 0,
      succeeded: 0,
      failed: 0,
      backoffLimit: 6,
      completedIndexes: "",
      condition: "",
      reason: "",
      message: "",
      startedAt: ago(120),
      finishedAt: undefined,
      lastFailure: undefined,
      retryAt: undefined,
      ...job,
    },
  });
}
