import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { aRandomPod, IMAGES } from "./host/a-random-pod.ts";
import { SimAgent, SimDisk } from "./host/sim-agent.ts";
import { NO_FAULTS } from "./host/sim-calls.ts";
import { SimHost } from "./host/sim-host.ts";

const SIX_HOURS_MS = 6 * 3_600_000;
/** This is longer than the longest back-off of images and of failures. */
const BACK_OFF_MAX_MS = 310_000;

test("an image that could not be pulled is retried in time although the clock was set back", async (t) => {
  const { clock, host } = aHost(t);
  host.registryUp = false;
  await clock.run(30_000);

  clock.jumpWall(-SIX_HOURS_MS);
  host.registryUp = true;
  await clock.run(BACK_OFF_MAX_MS);

  assert.equal(host.running().length, 1);
});

test("a step that failed is retried in time although the clock was set back", async (t) => {
  const { clock, host } = aHost(t);
  host.calls.faults = { ...NO_FAULTS, callFails: 1 };
  await clock.run(30_000);
  assert.equal(host.running().length, 0);

  clock.jumpWall(-SIX_HOURS_MS);
  host.calls.faults = { ...NO_FAULTS };
  await clock.run(BACK_OFF_MAX_MS);

  assert.equal(host.running().length, 1);
});

/** Returns a host whose agent has just been assigned a pod of one container. */
function aHost(t: { after(run: () => void): void }): { clock: VirtualClock; host: SimHost } {
  const clock = new VirtualClock();
  const random = randomOf(1).next;
  const host = new SimHost(clock, random);
  for (const image of IMAGES) host.registry.add(image);
  const agent = new SimAgent(host, new SimDisk(), random, []);
  agent.start(false);
  const { initContainers: _, volumes: __, ...pod } = aRandomPod("p1", random);
  const main = pod.containers.slice(-1).map(({ probes: _p, hooks: _h, mounts: _m, ...it }) => it);
  agent.assign({ ...pod, stopping: false, restartPolicy: "Always", containers: main });
  t.after(() => agent.kill());
  return { clock, host };
}
