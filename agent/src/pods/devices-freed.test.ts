import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { VirtualClock } from "@forage/common/virtual-clock";
import { SimAgent, SimDisk } from "../../../sim/host/sim-agent.ts";
import { SimHost } from "../../../sim/host/sim-host.ts";
import { DeviceError, noDevices, type PodDevices } from "../devices/devices.ts";
import type { Pod } from "./pod.ts";

const GPU = "example.com/gpu";

test("a pod that waits for a device gets it as soon as another pod releases it", async () => {
  const { agent, clock, gpu } = aHost();
  agent.assign(aPod("a"));
  await clock.run(10_000);
  assert.equal(gpu.holder, "a");
  agent.assign(aPod("b"));
  // Wait until the pod's back-off is long and it has just retried.
  for (let looks = 0; retryInMs(agent, clock) < 25_000; looks += 1) {
    assert.ok(looks < 1_000, "the wait never grows");
    await clock.run(1_000);
  }
  const retryAtMs = clock.nowMs() + retryInMs(agent, clock);
  agent.unassign("a");
  await clock.run(60_000);
  assert.equal(agent.statuses.get("b")?.phase, "RUNNING");
  const [, byB = Number.NaN] = gpu.takenAtMs;
  assert.ok(byB < retryAtMs, `taken ${byB - retryAtMs} ms after the wait was over`);
});

test("a device that is freed while a pod's request is rejected is requested again at once", async () => {
  const { agent, clock, gpu } = aHost();
  gpu.holder = "a";
  gpu.freedMeanwhile = true;
  agent.assign(aPod("b"));
  await clock.run(10_000);
  assert.equal(gpu.holder, "b");
  const [asked = 0, again = 0] = gpu.askedAtMs;
  assert.equal(again, asked);
});

test("a finished pod that is kept releases its device", async () => {
  const { agent, clock, gpu, host } = aHost();
  agent.assign({ ...aPod("a"), restartPolicy: "Never" });
  await clock.run(10_000);
  assert.equal(gpu.holder, "a");
  host.end(host.running()[0]?.id ?? "", 0);
  await clock.run(10_000);
  assert.equal(agent.statuses.get("a")?.phase, "SUCCEEDED");
  assert.equal(gpu.holder, undefined);
  agent.assign(aPod("b"));
  await clock.run(60_000);
  assert.equal(gpu.holder, "b");
});

test("a container that will be restarted keeps its device", async () => {
  const { agent, clock, gpu, host } = aHost();
  agent.assign({ ...aPod("a"), restartPolicy: "OnFailure" });
  await clock.run(10_000);
  host.end(host.running()[0]?.id ?? "", 1);
  await clock.run(10_000);
  assert.equal(agent.statuses.get("a")?.phase, "RUNNING");
  assert.equal(gpu.holder, "a");
  assert.equal(gpu.releases, 0);
});

function aHost() {
  const clock = new VirtualClock();
  const random = randomOf(1).next;
  const host = new SimHost(clock, random);
  host.registry.add("app:1");
  const gpu = new OneGpu(clock);
  const agent = new SimAgent(host, new SimDisk(), random, [], gpu.devices());
  agent.start(false);
  return { agent, clock, gpu, host };
}

class OneGpu {
  readonly #clock: VirtualClock;
  readonly askedAtMs: number[] = [];
  readonly takenAtMs: number[] = [];
  holder: string | undefined;
  /** Rejects the request after the device was freed. */
  freedMeanwhile = false;
  releases = 0;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  devices(): PodDevices {
    let freed = () => {};
    return {
      ...noDevices,
      allocate: async (podUid) => {
        this.askedAtMs.push(this.#clock.nowMs());
        const isFree = this.holder === undefined || this.holder === podUid;
        if (!isFree && this.freedMeanwhile) {
          this.holder = undefined;
          freed();
        }
        if (!isFree) throw new DeviceError(`${this.holder} has it`);
        this.takenAtMs.push(this.#clock.nowMs());
        this.holder = podUid;
        return [];
      },
      release: async (podUid) => {
        if (this.holder !== podUid) return;
        this.releases += 1;
        this.holder = undefined;
        freed();
      },
      onFreed: (listener) => {
        freed = listener;
      },
    };
  }
}

function retryInMs(agent: SimAgent, clock: VirtualClock): number {
  const state = agent.statuses.get("b")?.containers[0]?.state;
  if (state?.type !== "waiting" || state.reason !== "CreateContainerConfigError") return 0;
  return (state.retryAtMs ?? 0) - clock.nowMs();
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
    containers: [
      {
        name: "main",
        image: "app:1",
        pullPolicy: "IfNotPresent",
        command: ["serve"],
        args: [],
        env: [],
        ports: [],
        extended: { [GPU]: 1 },
      },
    ],
  };
}
