import assert from "node:assert/strict";
import { test } from "node:test";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { aContainerService, aJob, aRequest } from "../../../../test/support/requests.ts";
import { verdictOn } from "../../../../test/support/verdict.ts";

const LIMIT_BYTES = 256 * 1024 * 1024;
/** A container whose specification has a little more than 200 kB: 1,341 of them fit. */
const container = { name: "main", image: "app:v1", env: [largeVariable("A"), largeVariable("B")] };
const CUSTOM = [{ name: "queue", targetType: "AverageValue", targetValue: "5" }];

const service = (scaling: object) => aContainerService("web", { container, scaling });
const job = (parallelism: number) =>
  aJob("web", { container, jobConfig: { completions: 5_000, parallelism } });

for (const [what, resource, path] of [
  ["1,330 replicas", service({ replicas: 1_330 }), undefined],
  ["1,350 replicas", service({ replicas: 1_350 }), "container_service.scaling.replicas"],
  [
    "up to 1,350 replicas by autoscaling",
    service({ replicas: 1, autoscaling: { maxReplicas: 1_350, customMetrics: CUSTOM } }),
    "container_service.scaling.autoscaling.max_replicas",
  ],
  ["1,330 pods of a job at a time", job(1_330), undefined],
  ["1,350 pods of a job at a time", job(1_350), "job.job_config.parallelism"],
  [
    "1,350 parallel pods of a cron job",
    cronJob({ jobConfig: { parallelism: 1_350 } }),
    "cron_job.job_config.parallelism",
  ],
  ["1,200 kept runs", cronJob({ successfulJobsHistoryLimit: 600, failedJobsHistoryLimit: 600 }), undefined],
  [
    "1,400 kept runs",
    cronJob({ successfulJobsHistoryLimit: 600, failedJobsHistoryLimit: 800 }),
    "cron_job.failed_jobs_history_limit",
  ],
] as const) {
  test(`${path === undefined ? "accepts" : `rejects at ${path}`} ${what} with a specification of 200 kB`, () => {
    const { violations } = verdictOn(aRequest("a1", [resource]));
    assert.deepEqual(
      violations.map(({ field }) => field),
      path === undefined ? [] : [`resources[0].${path}`],
    );
  });
}

test("reports the largest number that fits, and how to reduce the size", () => {
  const resource = service({ replicas: 10_000 });
  const bytes = ForageResource.encode(resource).finish().length;
  const [violation] = verdictOn(aRequest("a1", [resource])).violations;
  assert.equal(
    violation?.description,
    `must be at most ${Math.floor(LIMIT_BYTES / bytes)}, is 10000: 10000 replicas of a specification of ${bytes} bytes are more than ${LIMIT_BYTES} bytes; lower it, or move large values to a config map or secret`,
  );
});

test("counts the labels of the request for each replica", () => {
  const labels = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`k${i}`, "v".repeat(60)]));
  const small = aContainerService("web", { scaling: { replicas: 10_000 } });
  assert.deepEqual(verdictOn(aRequest("a1", [small], labels)).violations, []);
  const medium = (bytes: number) => {
    const env = [{ name: "A", valueSource: { $case: "value", value: "x".repeat(bytes) } }];
    return aContainerService("web", {
      scaling: { replicas: 10_000 },
      container: { name: "main", image: "app", env },
    });
  };
  assert.deepEqual(verdictOn(aRequest("a1", [medium(25_000)])).violations, []);
  assert.equal(verdictOn(aRequest("a1", [medium(25_000)], labels)).violations.length, 1);
});

function cronJob(overrides: object): ForageResource {
  const value = { schedule: "@hourly", container, ...overrides };
  return ForageResource.fromPartial({ name: "web", spec: { $case: "cronJob", value } } as object);
}

function largeVariable(name: string) {
  return { name, valueSource: { $case: "value", value: "x".repeat(100_000) } };
}
