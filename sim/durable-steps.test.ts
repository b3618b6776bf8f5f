import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { decodePodState, type PodState } from "../agent/src/journal/pod-state.ts";
import type { Pod } from "../agent/src/pods/pod.ts";
import { aRandomPod, IMAGES } from "./host/a-random-pod.ts";
import { SimAgent, SimDisk } from "./host/sim-agent.ts";
import { nameOf } from "./host/sim-container.ts";
import { SimHost } from "./host/sim-host.ts";

/** This is longer than any call of the simulated host. */
const SLOW_WRITE_MS = 5_000;

test("a container starts only after its sandbox is on disk", async (t) => {
  const { disk, host, clock } = aSlowDisk(t);
  let atStart: PodState | undefined;
  const started = (): void => {
    atStart ??= stateOf(disk);
  };
  host.witness = witness({ started });

  await clock.run(60_000);

  assert.equal(atStart?.sandbox?.namespacePath, host.network.sandboxes.get("p1")?.namespacePath);
});

test("an init container is removed only after its end is on disk", async (t) => {
  const { disk, host, clock } = aSlowDisk(t);
  let removedBefore: boolean | undefined;
  const remove = host.remove.bind(host);
  host.remove = (id) => {
    const container = host.containers.get(id);
    if (container !== undefined && nameOf(container) === "init0")
      removedBefore ??= stateOf(disk)?.containers.init0?.phase !== "ended";
    remove(id);
  };

  await clock.run(120_000);

  assert.equal(removedBefore, false);
});

function stateOf(disk: SimDisk): PodState | undefined {
  const bytes = disk.states.get("p1");
  return bytes && decodePodState(bytes);
}

function witness(change: Partial<NonNullable<SimHost["witness"]>>): NonNullable<SimHost["witness"]> {
  const ignore = () => undefined;
  return { started: ignore, ended: ignore, killed: ignore, answered: ignore, released: ignore, ...change };
}

/** Returns an agent with a slow disk that has just been assigned a pod with an init container. */
function aSlowDisk(t: { after(run: () => void): void }) {
  const clock = new VirtualClock();
  const random = randomOf(1).next;
  const host = new SimHost(clock, random);
  for (const image of IMAGES) host.registry.add(image);
  const disk = new SimDisk();
  disk.writeMs = SLOW_WRITE_MS;
  const agent = new SimAgent(host, disk, random, []);
  agent.start(false);
  agent.assign(aPod(random));
  t.after(() => agent.kill());
  return { clock, host, disk };
}

function aPod(random: () => number): Pod {
  const { volumes: _, ...pod } = aRandomPod("p1", random);
  const [main] = pod.containers.slice(-1).map(({ probes: _p, hooks: _h, mounts: _m, ...it }) => it);
  assert.ok(main);
  const init = { ...main, name: "init0", command: ["init"], ports: [] };
  return { ...pod, stopping: false, restartPolicy: "Always", initContainers: [init], containers: [main] };
}
