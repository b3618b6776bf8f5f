import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { randomOf } from "@forage/common/random";
import { withHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { getPods, type PodJson, restarts } from "../system/pods.ts";
import { rollManifest } from "../system/roll-manifest.ts";
import { type System, startSystem, waitForReady } from "../system/system.ts";

const LIMIT = { timeout: 240_000 };
const WAIT_MS = 90_000;
const REPLICAS = 4;
const KILLS = 10;
/** The longest time from an apply or a restart to the next kill. A whole rollout takes three times as long. */
const LONGEST_MS = 1_200;

test("kill -9 of the coordinator at ten random points of rollouts: each completes", LIMIT, async (t) => {
  const seed = Number(process.env.FORAGE_E2E_SEED ?? Math.trunc(Math.random() * 2 ** 32));
  t.diagnostic(`FORAGE_E2E_SEED=${seed} draws the same moments again`);
  const random = randomOf(seed).next;
  const host = await withHost(t);
  const system = await startSystem(host);
  const { coordinator } = system;
  let version = await deploy(system, host.image, 1);
  await follow(system);

  for (let left = KILLS; left > 0; ) {
    const { finished } = await rolloutOf(system);
    // To kill the coordinator during a rollout, the next version is deployed once a rollout has finished.
    if (finished) version = await deploy(system, host.image, Number(version.slice(1)) + 1);
    await delay(random() * LONGEST_MS);
    await coordinator.kill();
    left -= 1;
    coordinator.start();
    await waitForReady(system.http, coordinator);
  }

  await follow(system);
  t.diagnostic(`in rollouts to ${version}`);
  assert.notEqual(version, "v1");
  const pods = await settled(system);
  assert.equal(restarts(pods), 0);
  for (const { status } of pods) {
    const port = status?.hostPorts?.[0]?.hostPort;
    assert.equal((await (await fetch(`http://127.0.0.1:${port}/`)).text()).trim(), version);
  }
  const ids = (await host.nerdctl(["ps", "-aq"])).stdout.split("\n").filter((id) => id !== "");
  assert.equal(ids.length, REPLICAS, "no container is left over or started twice");
});

async function deploy(system: System, image: string, number: number): Promise<string> {
  const version = `v${number}`;
  const manifest = rollManifest({ name: "web", image, version, replicas: REPLICAS, drainSeconds: 0 });
  const { exitCode, stderr } = await system.forage(["apply", "--detach", "-f", "-"], manifest);
  assert.equal(exitCode, 0, stderr);
  return version;
}

async function follow(system: System): Promise<void> {
  const args = ["rollout", "status", "container_service/web", "--watch", "-n", "e2e"];
  const { exitCode, stdout, stderr } = await system.forage(args);
  assert.equal(exitCode, 0, stderr + stdout);
}

function rolloutOf(system: System): Promise<{ readonly finished?: boolean }> {
  return system.ask(["rollout", "status", "container_service/web", "-n", "e2e"]);
}

/** Waits until all replicas are ready and no pod is stopping. */
async function settled(system: System): Promise<PodJson[]> {
  let seen: PodJson[] = [];
  const isSettled = async (): Promise<boolean> => {
    seen = await getPods(system);
    return seen.length === REPLICAS && seen.every(({ status }) => status?.ready === true);
  };
  const explain = (): string => JSON.stringify(seen, undefined, 1);
  await waitFor(isSettled, { what: "only new pods are left", limitMs: WAIT_MS, everyMs: 200, explain });
  return seen;
}
