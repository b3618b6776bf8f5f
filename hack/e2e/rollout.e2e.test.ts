import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { containerIds, getKeptPods, getPods, type PodJson, restarts } from "../system/pods.ts";
import { type RollManifest, rollManifest } from "../system/roll-manifest.ts";
import { type System, startSystem } from "../system/system.ts";
import { startTraffic } from "../system/traffic.ts";

const LIMIT = { timeout: 240_000 };
const WAIT_MS = 90_000;
const ROLLED_BACK = 3;

describe("rollouts of real containers", { concurrency: false }, () => {
  let host: TestHost;
  let system: System;

  before(async () => {
    host = await startTestHost();
    system = await startSystem(host);
  }, LIMIT);
  after(() => host?.close(), LIMIT);

  test("a rolling update under constant load loses no request", LIMIT, async () => {
    await applied({ name: "web", version: "v1", replicas: 3 });
    const traffic = startTraffic(system, "web");
    await waitFor(() => traffic.count > 50, { what: "requests are answered", limitMs: WAIT_MS });
    await applied({ name: "web", version: "v2", replicas: 3 });
    await podsOf("web", "only new ones are left", (pods) => pods.length === 3);
    const before = traffic.count;
    await waitFor(() => traffic.count > before + 50, { what: "requests are answered", limitMs: WAIT_MS });
    await traffic.end();
    assert.deepEqual(traffic.failures, []);
    assert.deepEqual([...traffic.answers.keys()].sort(), ["v1", "v2"]);
    await removed("web");
  });

  test("a new version that crashes is rolled back, with its exit code and last output", LIMIT, async () => {
    await applied({ name: "crash", version: "v1", replicas: 2 });
    const before = containerIds(await podsOf("crash", "two run", (pods) => pods.length === 2));
    const { exitCode, stderr } = await apply({
      ...{ name: "crash", version: "v2", replicas: 2 },
      script: "echo the flux capacitor is missing; exit 42",
    });
    assert.equal(exitCode, ROLLED_BACK, stderr);
    assert.match(stderr, /rolled back to revision 1/);
    assert.match(stderr, /exited with code 42/);
    assert.match(stderr, /the flux capacitor is missing/);
    const pods = await podsOf("crash", "those of before run", (pods) => pods.length === 2);
    assert.deepEqual(containerIds(pods), before);
    assert.equal(restarts(pods), 0);
    await failedPodIsKept();
    await removed("crash");
  });

  /** Asserts that nothing of the failed pod runs and that its logs and last status can be read. */
  async function failedPodIsKept(): Promise<void> {
    const [failed] = await getKeptPods(system);
    assert.ok(failed, "a failed pod is kept");
    const about = (...words: string[]) => system.forage(["-n", "e2e", ...words]);
    const agentDir = join(host.dir, "agent");
    await waitFor(() => !existsSync(join(agentDir, "pods", failed.uid)), {
      what: "only the kept logs are left of the failed pod",
      limitMs: WAIT_MS,
    });
    await system.agent.kill();
    system.agent.start();
    let logs = await about("logs", failed.name);
    const read = async (): Promise<boolean> => {
      logs = await about("logs", failed.name);
      return logs.exitCode === 0;
    };
    await waitFor(read, {
      ...{ what: "the agent that started again serves the kept logs", limitMs: WAIT_MS, everyMs: 500 },
      explain: () => logs.stderr,
    });
    assert.match(logs.stdout, /the flux capacitor is missing/);
    assert.match(
      (await about("describe", "pod", failed.name)).stdout,
      /Status: +Failed[\s\S]*Kept until: +20/,
    );
    assert.match((await about("why", failed.name)).stdout, /failed and was stopped/);
    const refused = await about("exec", failed.name, "--", "true");
    assert.match(refused.stderr, /only its logs and its last status are kept/);
  }

  test("an image that doesn't exist is rolled back with the cause, under every strategy", LIMIT, async () => {
    const registry = await host.startRegistry();
    for (const updateStrategy of [undefined, { type: "Recreate" }]) {
      const service = { name: "image", replicas: 1, ...(updateStrategy && { updateStrategy }) };
      await applied({ ...service, version: "v1" });
      const before = containerIds(await podsOf("image", "it runs", (pods) => pods.length === 1));
      const image = `${registry.address}/team/nothing:1`;
      const { exitCode, stderr } = await apply({ ...service, version: "v2", image });
      assert.equal(exitCode, ROLLED_BACK, stderr);
      assert.match(stderr, /ErrImageNotFound.*team\/nothing:1/);
      const pods = await podsOf("image", "the one of before runs", (pods) => pods.length === 1);
      assert.deepEqual(containerIds(pods), before);
      await removed("image");
    }
  });

  test("with the registry down, Recreate keeps the old pod until the node has the image", LIMIT, async () => {
    const registry = await host.startRegistry();
    const archive = await buildBusyboxImage({ name: "localhost/forage/ahead:1" });
    const { reference: image } = await registry.pushImage(archive, "team/ahead:1");
    await registry.close();
    const service = { name: "ahead", replicas: 1, updateStrategy: { type: "Recreate" } };
    await applied({ ...service, version: "v1" });
    const before = containerIds(await podsOf("ahead", "it runs", (pods) => pods.length === 1));
    const sent = await system.forage(
      ["apply", "--detach", "-f", "-"],
      manifest({ ...service, version: "v2", image }),
    );
    assert.equal(sent.exitCode, 0, sent.stderr);
    let said = "";
    await waitFor(
      async () => {
        said = (await system.forage(["rollout", "status", "container_service/ahead", "-n", "e2e"])).stdout;
        return /older pods stay until 1 node has the image; node n1: ImagePullBackOff: .*team\/ahead:1/.test(
          said,
        );
      },
      { what: "the rollout says what it waits for", limitMs: WAIT_MS, everyMs: 500, explain: () => said },
    );
    assert.deepEqual(containerIds(await getPods(system)), before);

    const port = Number(registry.address.split(":")[1]);
    await host.startRegistry({ port, dir: registry.dir });
    const followed = await system.forage([
      "rollout",
      "status",
      "container_service/ahead",
      "--watch",
      "-n",
      "e2e",
    ]);
    assert.equal(followed.exitCode, 0, followed.stderr + followed.stdout);
    await podsOf(
      "ahead",
      "the new one runs",
      ([pod]) => pod !== undefined && !before.includes(containerIds([pod])[0] ?? ""),
    );
    await removed("ahead");
  });

  test("a pod on the host's network makes room for its successor", LIMIT, async () => {
    const service = {
      name: "single",
      replicas: 1,
      updateStrategy: { type: "Recreate" },
      hostNetwork: true,
      port: 18_734,
    };
    for (const version of ["v1", "v2"]) {
      await applied({ ...service, version });
      const pods = await podsOf(
        "single",
        "one runs",
        ([pod, ...others]) => pod !== undefined && others.length === 0,
      );
      assert.equal((await (await fetch(`http://127.0.0.1:${service.port}/`)).text()).trim(), version);
      // If two had run at a time, one could not have got its port and would have restarted.
      assert.equal(restarts(pods), 0);
    }
    await removed("single");
  });

  function manifest(options: Omit<RollManifest, "image"> & { readonly image?: string }): string {
    return rollManifest({ image: host.image, ...options });
  }

  function apply(options: Parameters<typeof manifest>[0]) {
    return system.forage(["apply", "-f", "-"], manifest(options));
  }

  async function applied(options: Parameters<typeof manifest>[0]): Promise<void> {
    const { exitCode, stderr } = await apply(options);
    assert.equal(exitCode, 0, stderr);
  }

  /** Returns all pods of the service once they meet the condition, including those that are stopping. */
  async function podsOf(name: string, what: string, holds: (pods: PodJson[]) => boolean): Promise<PodJson[]> {
    let seen: PodJson[] = [];
    const asked = async (): Promise<boolean> => {
      seen = (await getPods(system)).filter((pod) => pod.name.startsWith(`${name}-`));
      return holds(seen) && seen.every(({ status }) => status?.ready === true);
    };
    const explain = (): string => JSON.stringify(seen, undefined, 1);
    await waitFor(asked, { what: `${name}: ${what}`, limitMs: WAIT_MS, everyMs: 200, explain });
    return seen;
  }

  async function removed(name: string): Promise<void> {
    await system.forage(["delete", "-n", "e2e", "-l", `app=${name}`]);
    await podsOf(name, "nothing is left", (pods) => pods.length === 0);
  }
});
