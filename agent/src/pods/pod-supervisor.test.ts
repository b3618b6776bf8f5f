import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { SimAgent, SimDisk } from "../../../sim/host/sim-agent.ts";
import { nameOf, type SimContainer } from "../../../sim/host/sim-container.ts";
import { SimHost } from "../../../sim/host/sim-host.ts";
import { decodePodState } from "../journal/pod-state.ts";
import type { PodSandbox } from "../network/network.ts";
import { POD_UID_LABEL } from "./container-name.ts";
import type { Pod, PodContainer } from "./pod.ts";
import { fromPodState } from "./stored-memory.ts";

test("containers keep running while the network can't check their sandboxes", async () => {
  const { clock, host, disk } = aHost();
  const sandboxes = new UnreadableMap(host.network.sandboxes);
  Object.assign(host.network, { sandboxes });
  const agent = start(host, disk);
  agent.assign(aPod("a"));
  await clock.run(10_000);
  const before = host.running().map(({ id }) => id);
  assert.equal(before.length, 1);

  sandboxes.isUnreadable = true;
  await clock.run(200_000);
  sandboxes.isUnreadable = false;
  await clock.run(200_000);

  assert.deepEqual(
    host.running().map(({ id }) => id),
    before,
  );
});

test("a pod whose record is damaged keeps running until the coordinator does not assign it any more", async () => {
  const { clock, host, second } = await damagedPod(() => {});
  assert.equal(host.running().length, 2);

  second.supervisor.replace([aPod("b")]);
  await clock.run(60_000);

  assert.equal(host.running().length, 1);
  assert.deepEqual([...host.network.sandboxes.keys()], ["b"]);
});

test("removes a pod whose record is damaged and whose containers are gone", async () => {
  const { clock, host, second } = await damagedPod((host) => {
    for (const { id, spec } of host.containers.values())
      if (spec.labels[POD_UID_LABEL] === "a") host.containers.delete(id);
  });
  assert.equal(host.running().length, 1);
  assert.deepEqual([...host.network.sandboxes.keys()].sort(), ["a", "b"]);

  second.supervisor.replace([aPod("b")]);
  await clock.run(60_000);

  assert.deepEqual([...host.network.sandboxes.keys()], ["b"]);
});

test("removes the files of an unknown pod that has nothing else", async () => {
  const { clock, host, disk } = aHost();
  const first = start(host, disk);
  first.assign(aPod("a"));
  await clock.run(10_000);
  host.directories.add("lost");
  first.kill();
  await clock.run(2_000);
  const second = start(host, disk);
  await clock.run(60_000);
  assert.deepEqual([...host.directories], ["a"]);
  assert.deepEqual([...second.statuses.keys()], ["a"]);
  assert.equal(host.running().length, 1);
});

test("init containers run again in a new namespace even if the start of the main container is not recorded", async () => {
  const { clock, host, disk } = aHost();
  const pod: Pod = { ...aPod("a"), initContainers: [{ ...aContainer("setup"), command: ["init"] }] };
  const first = start(host, disk);
  first.assign(pod);
  const main = () => host.running().find((it) => nameOf(it) === "main");
  let beforeMain = disk.states.get("a");
  await clock.runUntil(clock.monotonicMs() + 60_000, () => {
    if (main() === undefined) beforeMain = disk.states.get("a");
    return main() !== undefined;
  });
  first.kill();
  assert.ok(beforeMain !== undefined);
  disk.states.set("a", beforeMain);
  host.network.sandboxes.delete("a");
  const starts: string[] = [];
  const nothing = () => {};
  const started = (it: SimContainer) => starts.push(nameOf(it));
  host.witness = { started, ended: nothing, killed: nothing, answered: nothing, released: nothing };

  start(host, disk);
  await clock.run(60_000);

  assert.deepEqual(starts, ["setup", "main"]);
});

test("a pull and a removal change the host's list of images, and a pod whose image is present does not", async () => {
  const { clock, host, disk } = aHost();
  const agent = start(host, disk);
  agent.assign(aPod("a"));
  await clock.run(10_000);
  assert.equal(agent.imageChanges, 1);
  agent.assign(aPod("b"));
  await clock.run(10_000);
  assert.equal(agent.imageChanges, 1);
  agent.supervisor.imageRemoved("app:1");
  assert.equal(agent.imageChanges, 2);
});

test("a removed pod stays removed even if its recorded assignment is older than its removal", async () => {
  const { clock, host, disk } = aHost();
  const agent = new SimAgent(host, disk, randomOf(1).next, []);
  const memory = { containers: {}, removed: true };
  void agent.supervisor.start([{ uid: "a", pod: aPod("a"), memory }]);
  await clock.run(60_000);
  assert.equal(host.containers.size, 0);
  assert.equal(agent.statuses.get("a")?.phase, "REMOVED");
});

test("reports a pod as removed once its removal is on disk", async () => {
  const { clock, host, disk } = aHost();
  const agent = start(host, disk);
  agent.assign(aPod("a"));
  await clock.run(10_000);
  disk.isFull = true;
  agent.assign({ ...aPod("a"), stopping: true });
  await clock.run(60_000);
  assert.equal(host.containers.size, 0);
  assert.equal(agent.statuses.get("a")?.phase, "STOPPING");
  assert.equal(agent.statuses.get("a")?.reason, "RemoveFailed");

  disk.isFull = false;
  await clock.run(60_000);

  assert.equal(agent.statuses.get("a")?.phase, "REMOVED");
});

test("reports a pod as over once its outcome is on disk, and runs it again if the host reboots before", async () => {
  const { clock, host, disk } = aHost();
  const first = start(host, disk);
  first.assign({ ...aPod("a"), restartPolicy: "OnFailure" });
  await clock.run(10_000);
  disk.isFull = true;
  host.end(host.running()[0]?.id ?? "", 0);
  await clock.run(60_000);
  assert.equal(first.statuses.get("a")?.phase, "RUNNING");
  assert.equal(first.statuses.get("a")?.reason, "OutcomeNotSaved");

  first.kill();
  host.reboot();
  disk.isFull = false;
  const second = start(host, disk, { rebooted: true });
  await clock.run(60_000);

  assert.equal(host.running().length, 1);
  assert.equal(second.statuses.get("a")?.phase, "RUNNING");
});

test("reports the outcome of a pod once the disk accepts writes again", async () => {
  const { clock, host, disk } = aHost();
  const agent = start(host, disk);
  agent.assign({ ...aPod("a"), restartPolicy: "OnFailure" });
  await clock.run(10_000);
  disk.isFull = true;
  host.end(host.running()[0]?.id ?? "", 0);
  await clock.run(60_000);
  assert.equal(agent.statuses.get("a")?.phase, "RUNNING");

  disk.isFull = false;
  await clock.run(60_000);

  assert.equal(agent.statuses.get("a")?.phase, "SUCCEEDED");
  assert.equal(decodePodState(disk.states.get("a") ?? new Uint8Array()).containers.main?.phase, "ended");
});

test("an eviction ends the pod at once, and the pod is reported as FAILED once that is on disk", async () => {
  const { clock, host, disk } = aHost();
  const agent = start(host, disk);
  agent.assign(aPod("a"));
  await clock.run(10_000);
  disk.isFull = true;
  agent.supervisor.evict("a", "it has written too much");
  await clock.run(60_000);
  assert.equal(host.running().length, 0);
  assert.equal(agent.statuses.get("a")?.phase, "RUNNING");
  assert.equal(agent.statuses.get("a")?.ready, false);

  disk.isFull = false;
  await clock.run(60_000);

  assert.equal(agent.statuses.get("a")?.phase, "FAILED");
  assert.equal(agent.statuses.get("a")?.reason, "Evicted");
});

/** Returns a host with two pods and a second agent that can't read the record of pod a. */
async function damagedPod(meanwhile: (host: SimHost) => void) {
  const { clock, host, disk } = aHost();
  const first = start(host, disk);
  for (const uid of ["a", "b"]) first.assign(aPod(uid));
  await clock.run(10_000);
  first.kill();
  await clock.run(2_000);
  meanwhile(host);
  const second = new SimAgent(host, disk, randomOf(2).next, []);
  const recorded = ["a", "b"].map((uid) => {
    const memory = fromPodState(uid, decodePodState(disk.states.get(uid) ?? new Uint8Array()));
    return uid === "a" ? { uid, damaged: true, memory } : { uid, pod: aPod(uid), memory };
  });
  void second.supervisor.start(recorded);
  await clock.run(120_000);
  return { clock, host, second };
}

class UnreadableMap extends Map<string, PodSandbox> {
  isUnreadable = false;

  override get(key: string): PodSandbox | undefined {
    if (this.isUnreadable) throw new Error("ip: timed out");
    return super.get(key);
  }
}

function aHost() {
  const clock = new VirtualClock();
  const host = new SimHost(clock, randomOf(1).next);
  host.registry.add("app:1");
  return { clock, host, disk: new SimDisk() };
}

function start(host: SimHost, disk: SimDisk, { rebooted } = { rebooted: false }): SimAgent {
  const agent = new SimAgent(host, disk, randomOf(1).next, []);
  agent.start(rebooted);
  return agent;
}

function aPod(uid: string): Pod {
  return {
    uid,
    namespace: "default",
    name: `pod-${uid}`,
    specHash: "h",
    stopping: false,
    hostname: uid,
    graceMs: 1_000,
    restartPolicy: "Always",
    containers: [aContainer("main")],
  };
}

function aContainer(name: string): PodContainer {
  return {
    ...{ name, image: "app:1", pullPolicy: "IfNotPresent", command: ["serve"] },
    ...{ args: [], env: [], ports: [] },
  };
}
