import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { containerIds, getPods, restarts } from "../system/pods.ts";
import { type System, startSystem, waitForNode } from "../system/system.ts";

const LIMIT = { timeout: 180_000 };

describe("jobs on a real host", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;

  before(async () => {
    host = await startTestHost();
    system = await startSystem(host);
    // The cron job is due during the tests below.
    const { exitCode, stderr } = await apply("cron_job", "tick", "echo tick at $AT", {
      schedule: "* * * * *",
      env,
    });
    assert.equal(exitCode, 0, stderr);
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  test("an indexed job runs to its end, and its pods can be read afterwards", LIMIT, async () => {
    const config = { completions: 3, parallelism: 3, completion_mode: "Indexed" };
    const script = "echo number $JOB_COMPLETION_INDEX on $(hostname)";
    const { exitCode, stderr } = await apply("job", "numbers", script, { config });
    assert.equal(exitCode, 0, stderr);
    const lines = await Promise.all((await podsOf("numbers")).map(({ name }) => logsOf(name)));
    assert.deepEqual(
      lines.sort(),
      [0, 1, 2].map((index) => `number ${index} on numbers-${index}\n`),
    );
    const { job } = await show("job", "numbers");
    assert.deepEqual([job?.condition, job?.succeeded, job?.completedIndexes], ["Complete", 3, "0-2"]);
  });

  test("OnFailure runs the container again in its pod, and counts it", LIMIT, async () => {
    const script =
      "if test -e /scratch/once; then echo well; else touch /scratch/once; echo badly; exit 3; fi";
    const { exitCode, stderr } = await apply("job", "again", script, { config: { backoff_limit: 1 } });
    assert.equal(exitCode, 0, stderr);
    const pods = await podsOf("again");
    assert.equal(pods.length, 1);
    assert.equal(await logsOf(pods[0]?.name ?? ""), "well\n");
    const { job } = await show("job", "again");
    assert.deepEqual([job?.succeeded, job?.failed, job?.lastFailure?.exitCode], [1, 1, 3]);
    assert.match(job?.lastFailure?.message ?? "", /badly/);
  });

  test("Never leaves the failed pod, and the rollout reports how it ended", LIMIT, async () => {
    const annotations = { "forage.dev/backoff-limit": "0" };
    const script = "echo the disk is on fire; exit 7";
    const { exitCode, stderr } = await apply("job", "fire", script, {
      config: { restart_policy: "Never" },
      annotations,
    });
    assert.equal(exitCode, 1, stderr);
    assert.match(stderr, /failed once, with a limit of 0; pod fire-\S+: container main exited with code 7/);
    const [pod] = await podsOf("fire");
    assert.equal(await logsOf(pod?.name ?? ""), "the disk is on fire\n");
  });

  test("an agent that restarts doesn't run ended jobs again", LIMIT, async () => {
    const before = await podsOf("numbers");
    await system.agent.kill();
    system.agent.start();
    await waitForNode(system);
    const [first] = before;
    const read = () => system.forage(["logs", first?.name ?? "", "-n", "e2e"]);
    await waitFor(async () => (await read()).exitCode === 0, { what: "the node answers", limitMs: 60_000 });
    assert.match((await read()).stdout, /^number \d on numbers-\d\n$/);
    const pods = await podsOf("numbers");
    assert.deepEqual(containerIds(pods), containerIds(before));
    assert.equal(restarts(pods), 0);
    assert.equal((await show("job", "numbers")).job?.succeeded, 3);
  });

  test("a service starts after the job that it depends on", LIMIT, async () => {
    const annotations = { "forage.dev/depends-on": "job/first" };
    const { exitCode, stderr } = await send([
      resource("container_service", "late", "sleep 3600", { annotations }),
      resource("job", "first", "sleep 2"),
    ]);
    assert.equal(exitCode, 0, stderr);
    const first = await show("job", "first");
    const late = (await podsOf("late"))[0];
    const ended = Date.parse(String(first.job?.finishedAt));
    assert.ok(
      Date.parse(String(late?.createdAt)) >= ended,
      `${late?.createdAt} is not before ${first.job?.finishedAt}`,
    );
  });

  test("a cron job runs on request and on schedule, and its runs are deleted with it", LIMIT, async () => {
    const run = await system.forage([
      "job",
      "run",
      "--from-cron",
      "tick",
      "--name",
      "now",
      "--wait",
      "-n",
      "e2e",
    ]);
    assert.equal(run.exitCode, 0, run.stderr + run.stdout);
    const runs = async () => (await resources()).filter(({ owner }) => owner === "cron_job/tick");
    await waitFor(
      async () => (await runs()).some(({ name, job }) => name !== "now" && job?.condition === "Complete"),
      {
        what: "a run of the schedule",
        limitMs: 120_000,
      },
    );
    const scheduled = (await runs()).find(({ name }) => name !== "now");
    const [pod] = await podsOf(scheduled?.name ?? "");
    assert.match(await logsOf(pod?.name ?? ""), /^tick at \d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z\n$/);
    await system.forage(["delete", "cron_job/tick", "-n", "e2e", "--yes"]);
    await waitFor(async () => (await runs()).length === 0, { what: "its runs are gone", limitMs: 60_000 });
  });

  const env = [
    {
      name: "AT",
      field_ref: "metadata.annotations['batch.kubernetes.io/cronjob-scheduled-timestamp']",
    },
  ];

  interface Given {
    readonly config?: object;
    readonly annotations?: object;
    readonly env?: readonly object[];
    readonly schedule?: string;
  }

  function resource(kind: string, name: string, script: string, given: Given = {}): object {
    const { config, annotations, schedule } = given;
    const container = {
      name: "main",
      image: host.image,
      command: ["sh", "-c", script],
      env: given.env ?? [],
      volume_mounts: [{ name: "scratch", mount_path: "/scratch" }],
    };
    const spec = {
      container,
      volumes: [{ name: "scratch", empty_dir: {} }],
      ...(config && { job_config: config }),
      ...(schedule && { schedule }),
      pod_config: { annotations: annotations ?? {}, termination_grace_period_seconds: 1 },
    };
    return { name, [kind]: spec };
  }

  function send(all: readonly object[]) {
    return system.forage(["apply", "-f", "-"], JSON.stringify({ namespace: "e2e", resources: all }));
  }

  function apply(kind: string, name: string, script: string, given: Given = {}) {
    return send([resource(kind, name, script, given)]);
  }

  async function podsOf(workload: string) {
    return (await getPods(system)).filter((pod) => pod.workloadName === workload);
  }

  async function logsOf(pod: string): Promise<string> {
    const { stdout, stderr, exitCode } = await system.forage(["logs", pod, "-n", "e2e"]);
    assert.equal(exitCode, 0, stderr);
    return stdout;
  }

  function resources(): Promise<Resource[]> {
    return system.ask<Resource[]>(["get", "resources", "-n", "e2e"]);
  }

  async function show(kind: string, name: string): Promise<Resource> {
    const found = (await resources()).find((one) => one.kind === kind && one.name === name);
    assert.ok(found, `${kind}/${name}`);
    return found;
  }
});
