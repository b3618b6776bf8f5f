import { createHash } from "node:crypto";
import { randomOf } from "@forage/common/random";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { milliCpuOf } from "@forage/scheduler";
import { JournalKey } from "../agent/src/journal/journal-key.ts";
import type { PodStatus } from "../agent/src/pods/decide/pod-status.ts";
import type { SimulatedCall } from "./agent-client.ts";
import { AgentLife } from "./agent-life.ts";
import type { FleetNode, HostTrouble, NodeOptions } from "./fleet/fleet-node.ts";
import { type Direction, NodeLink } from "./fleet/network.ts";
import { POISON_NAMESPACE } from "./fleet/poison-store.ts";
import { clockOf } from "./fleet/process-clock.ts";
import { ProcessGate } from "./fleet/process-gate.ts";
import { endOf, kindOf, pullMs } from "./fleet/programs.ts";
import type { CoordinatorMessage } from "./fleet/stream.ts";
import { NO_FAULTS, type SimFaults } from "./host/sim-calls.ts";
import { keyOf, podOf, type SimContainer } from "./host/sim-container.ts";
import { SimHost } from "./host/sim-host.ts";
import { MemoryDisk } from "./memory-files.ts";
import { openServing } from "./open-serving.ts";
import { ServingHost, type SimLan } from "./serving-host.ts";
import { wholeDelays } from "./whole-delays.ts";

const KEEPALIVE_MS = 30_000;
const PATIENCE_MIN_MS = 5_000;
const PATIENCE_SPREAD_MS = 10_000;
const UNNOTICED_MAX_MS = 60_000;
const OUT_OF_MEMORY_EXIT = 137;
const REBOOT_EXIT = 255;

const KEY = new JournalKey(createHash("sha256").update("simulation").digest(), "the simulation");

const TROUBLES: Readonly<Record<HostTrouble, Partial<SimFaults>>> = {
  "calls-fail": { callFails: 0.5 },
  "calls-time-out": { callTimesOut: 0.3 },
  "events-are-lost": { eventLost: 1 },
  "starts-fail": { startFails: 0.5 },
  "pulls-fail": { pullFails: 1 },
  "probes-fail": { probeFails: 1 },
  "mounts-hang": { mountHangs: 1 },
};

/** A host with the real agent on simulated containers, network, volumes and disk. */
export class RealNode implements FleetNode {
  readonly name: string;
  readonly way: NodeLink;
  readonly #options: NodeOptions;
  readonly #host: SimHost;
  readonly #disk = new MemoryDisk();
  /** Undefined if it serves neither routes nor load balancers. */
  readonly serving: ServingHost | undefined;
  readonly #calls = new Set<SimulatedCall>();
  /** The newest assignment of each pod that the agent has received and not yet removed. */
  readonly #assignments = new Map<string, PodAssignment>();
  readonly #removed = new Set<string>();
  /** Uids of pods whose outcome the agent has reported. */
  readonly #over = new Set<string>();
  #gate: ProcessGate;
  #wallJumpMs = 0;
  #boot = 1;
  #lives = 0;
  #up = true;
  #life = new AbortController();
  #agent: AgentLife | undefined;

  /** `lan` is the network in which it serves routes and load balancers. Default: it serves none. */
  constructor(options: NodeOptions, lan?: SimLan) {
    this.#options = options;
    this.name = options.name;
    const { name, time, random, registryUp } = options;
    this.serving = lan && new ServingHost(lan, name, addressOf(name), time.monotonicMs);
    this.way = new NodeLink(time, random);
    this.#gate = new ProcessGate(time);
    this.#host = new SimHost(time, random.next, {
      endOf: ({ image }) => endOf(kindOf(image), random),
      isUnready: ({ image }) => kindOf(image) === "unready",
      pullMs: (image) => pullMs(kindOf(image), random),
      isInRegistry: (image) => kindOf(image) !== "missing",
      isRegistryUp: registryUp,
    });
    this.#host.witness = {
      started: (container) => this.#started(container),
      ended: (container) => this.#ended(container, container.exitCode),
      killed: () => {},
      answered: () => {},
      released: () => {},
    };
    this.#start();
  }

  get pods(): ReadonlySet<string> {
    const statuses = this.#agent?.pods() ?? [];
    return new Set(statuses.filter((it) => it.namespace !== POISON_NAMESPACE).map(({ uid }) => uid));
  }

  /** The number of running containers. */
  get running(): number {
    return this.#host.running().length;
  }

  get ending(): number {
    return this.#host.running().filter((it) => it.endsByItself && this.#assignments.has(podOf(it))).length;
  }

  get endedUnnoticed(): number {
    const running = new Set(this.#host.running().map(({ id }) => id));
    const containers = (this.#agent?.pods() ?? []).flatMap((pod) => pod.containers);
    return containers.filter((it) => it.state.type === "running" && !running.has(it.containerId)).length;
  }

  crash(): void {
    if (!this.#up) return;
    this.#options.note("crashes");
    this.#up = false;
    this.#boot++;
    this.#kill();
    for (const container of this.#host.running()) this.#ended(container, REBOOT_EXIT);
    this.#host.reboot();
    this.#disk.reboot();
    this.serving?.reboot();
    if (this.serving !== undefined) this.serving.isUp = false;
  }

  boot(): void {
    if (this.#up) return;
    this.#options.note("boots");
    this.#up = true;
    if (this.serving !== undefined) this.serving.isUp = true;
    this.#start();
  }

  restartAgent(downMs = 0): void {
    if (!this.#up) return;
    this.#options.note("its agent restarts");
    this.#kill();
    const boot = this.#boot;
    this.#options.time.schedule(downMs, () => {
      if (this.#up && this.#boot === boot && this.#life.signal.aborted) this.#start();
    });
  }

  partition(...directions: readonly Direction[]): void {
    this.#options.note(`is cut off ${directions.join(" and ")}`);
    this.way.cut(...directions);
    const calls = [...this.#calls];
    this.#later(KEEPALIVE_MS * (0.3 + 0.7 * this.#options.random.next()), () => {
      if (!this.way.open) for (const call of calls) call.fail("keep-alive timed out");
    });
  }

  heal(): void {
    if (this.way.open) return;
    this.#options.note("is reached again");
    this.way.heal();
  }

  breakStream(): void {
    for (const call of [...this.#calls]) call.fail("connection reset");
  }

  losePatience(answers: () => boolean): void {
    const { random } = this.#options;
    this.#later(PATIENCE_MIN_MS + random.below(PATIENCE_SPREAD_MS), () => {
      if (answers()) return;
      this.breakStream();
      this.losePatience(answers);
    });
  }

  reportAgain(): void {
    this.#agent?.touch();
  }

  stallDisk(forMs: number): void {
    this.#options.note(`its disk answers nothing for ${forMs} ms`);
    this.#disk.stalledUntilMs = this.#options.time.monotonicMs() + forMs;
  }

  fillDisk(forMs: number): void {
    this.#options.note(`its disk is full for ${forMs} ms`);
    this.#disk.full = true;
    this.#options.time.schedule(forMs, () => {
      this.#disk.full = false;
    });
  }

  jumpWallClock(byMs: number): void {
    this.#options.note(`its wall clock is set by ${byMs} ms`);
    this.#wallJumpMs += byMs;
    this.#host.wallJumpMs += byMs;
    this.#gate.wallJumpMs += byMs;
  }

  troubleHost(trouble: HostTrouble, forMs: number): void {
    this.#options.note(`${trouble} for ${forMs} ms`);
    const { calls } = this.#host;
    const faults = TROUBLES[trouble];
    const none = Object.fromEntries(Object.keys(faults).map((name) => [name, 0]));
    calls.faults = { ...calls.faults, ...faults };
    this.#options.time.schedule(forMs, () => {
      calls.faults = { ...calls.faults, ...none };
    });
  }

  removeContainer(): void {
    const running = this.#host.running();
    if (running.length === 0) return;
    const { id } = this.#options.random.pick(running);
    this.#options.note(`its container ${id} is removed from outside`);
    this.#host.remove(id);
  }

  calm(): void {
    this.#disk.full = false;
    this.#disk.stalledUntilMs = 0;
    this.#host.calls.faults = { ...NO_FAULTS };
    this.heal();
  }

  crashContainer(): void {
    const running = this.#host.running();
    if (running.length > 0) this.#host.end(this.#options.random.pick(running).id, OUT_OF_MEMORY_EXIT);
  }

  #start(): void {
    const { time, random, name, cpu, labels, dial, note } = this.#options;
    const life = new AbortController();
    this.#life = life;
    this.#lives++;
    this.#gate = new ProcessGate(time);
    this.#gate.wallJumpMs = this.#wallJumpMs;
    const own = randomOf(random.below(2 ** 31));
    const host = this.serving;
    const starting = AgentLife.start({
      ...{
        name,
        labels,
        life,
        cpuMilli: milliCpuOf(cpu),
        key: KEY,
        host: this.#host,
        disk: this.#disk,
        random: own.next,
        note,
      },
      sessionId: `${name}-${this.#lives}`,
      bootId: `${this.#boot}`,
      address: addressOf(name),
      clock: wholeDelays(clockOf(time, life.signal, 0, this.#gate)),
      channel: {
        way: this.way,
        dial: () => dial(name),
        noticed: (notice) => this.#noticed(notice),
        later: (delayMs, run) => this.#later(delayMs, run),
        opened: (call) => this.#calls.add(call),
        closed: (call) => this.#calls.delete(call),
        received: (message) => this.#received(message),
      },
      ...(host && {
        openServing: (access, files) => openServing({ ...access, host, key: KEY, files, note }),
      }),
      changed: (status) => this.#changed(status),
      forgotten: (uid) => this.#remove(uid),
    });
    starting.then(
      (agent) => {
        if (life.signal.aborted) return;
        this.#agent = agent;
      },
      (error: unknown) => {
        if (!life.signal.aborted) this.#options.witness.violation(`the agent of ${name} ended: ${error}`);
      },
    );
  }

  #kill(): void {
    this.#life.abort();
    for (const call of [...this.#calls]) call.abandon();
    this.#agent?.kill();
    this.#agent = undefined;
  }

  /**
   * Calls `notice` when the coordinator notices the end of a connection. Mostly it receives the end, and sometimes it
   * only misses heartbeats.
   */
  #noticed(notice: () => void): void {
    const { random, time } = this.#options;
    const afterMs = random.chance(0.7) ? this.way.delayMs() : random.below(UNNOTICED_MAX_MS);
    time.schedule(Math.round(afterMs), notice);
  }

  #received(message: CoordinatorMessage): void {
    for (const pod of podsIn(message)) {
      // A removed pod may be assigned once more before the coordinator knows.
      if (pod.namespace === POISON_NAMESPACE || this.#removed.has(pod.uid)) continue;
      if (!this.#assignments.has(pod.uid)) this.#options.witness.assigned(this.name, pod);
      this.#assignments.set(pod.uid, pod);
    }
  }

  /** Checks a started container. A start that began before the pod was ordered to stop may still end after it. */
  #started(container: SimContainer): void {
    const uid = podOf(container);
    const pod = this.#assignments.get(uid);
    if (pod !== undefined) this.#options.witness.starts(this.name, { ...pod, stopping: false });
    else if (this.#removed.has(uid))
      this.#options.witness.violation(`pod ${uid} started on ${this.name} after it was removed`);
    if (this.#over.has(uid))
      this.#options.witness.violation(`pod ${uid} runs again on ${this.name} after its outcome was reported`);
    const twins = this.#host.running().filter((it) => keyOf(it) === keyOf(container));
    if (twins.length > 1) this.#options.witness.violation(`container ${keyOf(container)} runs twice at once`);
  }

  #ended(container: SimContainer, exitCode: number): void {
    const pod = this.#assignments.get(podOf(container));
    if (pod !== undefined) this.#options.witness.ended(this.name, pod, exitCode);
  }

  #changed({ uid, phase, reason }: PodStatus): void {
    if (phase === "REMOVED") this.#remove(uid);
    else if ((phase === "SUCCEEDED" || phase === "FAILED") && reason !== "InvalidSpec") this.#over.add(uid);
  }

  #remove(uid: string): void {
    const pod = this.#assignments.get(uid);
    if (pod === undefined || this.#removed.has(uid)) return;
    this.#removed.add(uid);
    this.#assignments.delete(uid);
    this.#options.witness.removed(this.name, pod);
  }

  /** Calls `run` after the delay, if the agent is still alive. */
  #later(delayMs: number, run: () => void): void {
    const { signal } = this.#life;
    this.#options.time.schedule(Math.round(delayMs), () => {
      if (!signal.aborted) run();
    });
  }
}

function podsIn(message: CoordinatorMessage): readonly PodAssignment[] {
  if (message.$case === "snapshot") return message.value.pods;
  return message.$case === "delta" ? message.value.upserts : [];
}

/** Returns a unique address for each of some thousand names with a number. */
function addressOf(name: string): string {
  const number = Number(name.slice(1));
  return number < 256 ? `192.0.2.${number}` : `198.18.${number >> 8}.${number & 255}`;
}
