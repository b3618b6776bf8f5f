import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, PodContainer } from "../src/pods/pod.ts";
import { seededRandom } from "./sim/seeded-random.ts";
import { SimAgent, SimDisk } from "./sim/sim-agent.ts";
import { SimClock } from "./sim/sim-clock.ts";
import { keyOf, NO_FAULTS, SimHost } from "./sim/sim-host.ts";

// Seeds are cheap; a failing one is printed and can be run again by FORAGE_SIM_SEED.
const SEEDS = Number(process.env.FORAGE_SIM_SEEDS ?? 150);
const ONE_SEED = process.env.FORAGE_SIM_SEED;

const ROUNDS = 40;
const QUIET_MS = 20 * 60_000;
const TRACE_LINES = 120;

test("whatever fails, no container runs twice, and in the end just what is assigned runs", async () => {
  const seeds =
    ONE_SEED === undefined ? Array.from({ length: SEEDS }, (_, seed) => seed) : [Number(ONE_SEED)];
  for (const seed of seeds) await simulate(seed);
});

async function simulate(seed: number): Promise<void> {
  const world = new World(seed);
  try {
    for (let round = 0; round < ROUNDS; round += 1) await world.round();
    await world.calm();
    world.assertConverged();
  } catch (error) {
    const trace = world.trace.slice(-TRACE_LINES).join("\n");
    throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}\n${trace}`, {
      cause: error,
    });
  } finally {
    world.agent.kill();
  }
}

class World {
  readonly trace: string[] = [];
  readonly random: () => number;
  readonly clock = new SimClock();
  readonly disk = new SimDisk();
  readonly host: SimHost;
  readonly assigned = new Map<string, Pod>();
  agent: SimAgent;
  #pods = 0;
  #violation: string | undefined;
  /** Pods whose containers may be killed: their namespace was taken away or their host rebooted. */
  readonly #disturbed = new Set<string>();

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.host = new SimHost(this.clock, this.random);
    this.host.registry.add("app:1").add("app:latest").add("side:1");
    this.host.onRunning = () => this.#checkSingle();
    this.host.onKill = (container) => {
      const uid = keyOf(container).split("/")[0] ?? "";
      const pod = this.assigned.get(uid);
      if (pod === undefined || pod.stopping || this.#disturbed.has(uid)) return;
      this.#violation ??= `a healthy container of pod ${uid} was ended`;
    };
    this.agent = this.#bear(false);
  }

  async round(): Promise<void> {
    this.host.faults = {
      callFails: this.random() * 0.2,
      callTimesOut: this.random() * 0.1,
      eventLost: this.random() * 0.3,
      streamBreaks: this.random() * 0.05,
      startFails: this.random() * 0.1,
    };
    this.#act();
    await this.clock.advance(this.random() < 0.7 ? this.random() * 3_000 : this.random() * 90_000);
    assert.equal(this.#violation, undefined);
  }

  async calm(): Promise<void> {
    this.host.faults = { ...NO_FAULTS };
    this.host.registryUp = true;
    await this.clock.advance(QUIET_MS);
    assert.equal(this.#violation, undefined);
  }

  assertConverged(): void {
    const running = this.host.running().map(keyOf).sort();
    const wanted = [...this.assigned.values()]
      .filter((pod) => !pod.stopping)
      .flatMap((pod) => pod.containers.map((it) => `${pod.uid}/${it.name}`))
      .sort();
    assert.deepEqual(running, wanted, "what runs");
    assert.equal(this.host.containers.size, wanted.length, "nothing dead is left");
    const living = [...this.assigned.values()].filter((pod) => !pod.stopping).map((pod) => pod.uid);
    for (const [what, uids] of Object.entries({
      sandboxes: this.host.sandboxes,
      published: this.host.published,
      directories: this.host.directories,
    })) {
      assert.deepEqual([...uids.keys()].sort(), living.toSorted(), what);
    }
    for (const pod of this.assigned.values()) {
      const status = this.agent.statuses.get(pod.uid);
      assert.equal(status?.phase, pod.stopping ? "REMOVED" : "RUNNING", `phase of ${pod.uid}`);
      assert.equal(status?.ready, !pod.stopping);
    }
    assert.deepEqual([...this.disk.states.keys()].sort(), [...this.assigned.keys()].sort(), "memories");
    const hostPorts = [...this.host.published.values()].flat().map((it) => it.hostPort);
    assert.equal(new Set(hostPorts).size, hostPorts.length, "host ports are used once");
  }

  #act(): void {
    const choice = this.random();
    if (choice < 0.25) this.#assign();
    else if (choice < 0.33) this.#stop();
    else if (choice < 0.39) this.#unassign();
    else if (choice < 0.55) this.#crash();
    else if (choice < 0.7) this.#reincarnate(false);
    else if (choice < 0.74) this.#reincarnate(true);
    else if (choice < 0.78) this.#loseSandbox();
    else if (choice < 0.82) this.host.images.clear();
    else if (choice < 0.87) this.host.registryUp = !this.host.registryUp;
  }

  #bear(rebooted: boolean): SimAgent {
    const agent = new SimAgent(this.host, this.disk, this.random, this.trace);
    this.trace.push(
      `--- ${this.clock.nowMs() % 100_000_000} agent starts${rebooted ? " after a reboot" : ""}`,
    );
    agent.start(rebooted);
    return agent;
  }

  #assign(): void {
    this.#pods += 1;
    const pod = aPod(`p${this.#pods}`, this.random);
    this.assigned.set(pod.uid, pod);
    this.agent.assign(pod);
  }

  #stop(): void {
    const pod = this.#any([...this.assigned.values()]);
    if (pod === undefined) return;
    const stopping = { ...pod, stopping: true };
    this.assigned.set(pod.uid, stopping);
    this.agent.assign(stopping);
  }

  #unassign(): void {
    const pod = this.#any([...this.assigned.values()]);
    if (pod === undefined) return;
    this.assigned.delete(pod.uid);
    this.agent.unassign(pod.uid);
  }

  #crash(): void {
    const container = this.#any(this.host.running());
    if (container !== undefined) this.host.crash(container.id, this.random() < 0.5 ? 137 : 1);
  }

  #reincarnate(reboot: boolean): void {
    this.agent.kill();
    if (reboot) {
      for (const uid of this.assigned.keys()) this.#disturbed.add(uid);
      this.host.reboot();
    } else if (this.random() < 0.5) this.#crash();
    this.agent = this.#bear(reboot);
  }

  #loseSandbox(): void {
    const uid = this.#any([...this.host.sandboxes.keys()]);
    if (uid === undefined) return;
    this.#disturbed.add(uid);
    this.host.sandboxes.delete(uid);
  }

  #checkSingle(): void {
    const running = this.host.running().map(keyOf);
    if (new Set(running).size !== running.length)
      this.#violation ??= `two at once: ${running.sort().join(" ")}`;
  }

  #any<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.random() * items.length)];
  }
}

function aPod(uid: string, random: () => number): Pod {
  const main = aContainer("main", random() < 0.5 ? "app:1" : "app:latest");
  return {
    uid,
    namespace: "default",
    name: `pod-${uid}`,
    specHash: `hash-${uid}`,
    stopping: false,
    hostname: uid,
    graceMs: 5_000,
    restartPolicy: "Always",
    containers: random() < 0.3 ? [aContainer("side", "side:1"), main] : [main],
  };
}

function aContainer(name: string, image: string): PodContainer {
  return {
    name,
    image,
    pullPolicy: image.endsWith(":latest") ? "Always" : "IfNotPresent",
    command: [],
    args: [],
    env: [],
    ports: [{ container: name, containerPort: 80, protocol: "TCP" }],
  };
}
