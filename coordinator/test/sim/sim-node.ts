import type {
  ConnectRequest,
  NodeReport,
  PodAssignment,
  PodStatus,
} from "@forage/proto/forage/agent/v1/agent";
import type { FleetNode, NodeOptions } from "./fleet-node.ts";
import { Way } from "./network.ts";
import { poisonNamespace } from "./poison-store.ts";
import { type PodHost, SimPod } from "./sim-pod.ts";
import { type Downward, SimStream } from "./stream.ts";

const reconnectBaseMs = 500;
const reconnectCapMs = 10_000;
const welcomeTimeoutMs = 15_000;
/** A connection is given up between the two: a keep-alive may be due at once, or only after 10 s, and then gets 5 s. */
const patienceMinMs = 5_000;
const patienceSpreadMs = 10_000;
/** After so long without an answer a stream is given up. */
const keepaliveMs = 30_000;

/** A host with its agent: what it was told lies on its disk, and what it runs doesn't need the coordinator. */
export class SimNode implements FleetNode {
  readonly name: string;
  readonly way: Way;
  readonly pods = new Map<string, SimPod>();
  readonly #options: NodeOptions;
  readonly #images = new Set<string>();
  readonly #told = new Map<string, PodStatus>();
  /** What the coordinator assigned last, as the journal has it. */
  #journal = { revision: 0n, uids: new Set<string>() };
  #boot = 1;
  #session = 0;
  #reports = 0;
  #failures = 0;
  #up = true;
  #stream: SimStream | undefined;
  #heartbeat: () => void = () => {};
  #flushing = false;
  #stalled = false;
  readonly #unwritten: (() => void)[] = [];

  constructor(options: NodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.way = new Way(options.time, options.random);
    this.#dialLater();
  }

  get up(): boolean {
    return this.#up;
  }

  get connected(): boolean {
    return this.#stream !== undefined;
  }

  /** Nothing of it answers any more, and nobody is told. */
  crash(): void {
    if (!this.#up) return;
    this.#options.note("crashes");
    this.#up = false;
    this.#boot++;
    this.#flushing = false;
    this.#drop();
    this.#images.delete([...this.#images].at(-1) ?? "");
  }

  boot(): void {
    if (this.#up) return;
    this.#options.note("boots");
    this.#up = true;
    for (const pod of [...this.pods.values()]) pod.rebooted();
    this.#dialLater();
  }

  /** The agent ends and is started again; what runs keeps running. */
  restartAgent(downMs = 0): void {
    if (!this.#up) return;
    this.#options.note("its agent restarts");
    this.#drop();
    if (downMs === 0) this.#dialLater();
    else this.#after(downMs, () => this.#dialLater());
  }

  /** The way to the coordinator is cut; whoever waits for an answer gives up after a while. */
  partition(...directions: readonly ("up" | "down")[]): void {
    this.#options.note(`is cut off ${directions.join(" and ")}`);
    this.way.cut(...directions);
    const stream = this.#stream;
    this.#after(keepaliveMs * (0.3 + 0.7 * this.#options.random.next()), () => {
      if (this.way.open || stream === undefined || stream !== this.#stream) return;
      this.#drop();
      this.#dialLater();
    });
  }

  heal(): void {
    if (this.way.open) return;
    this.#options.note("is reached again");
    this.way.heal();
  }

  breakStream(): void {
    if (this.#stream === undefined) return;
    this.#options.note("loses its stream");
    this.#drop();
    this.#dialLater();
  }

  /** Gives up a connection that doesn't answer, and each that it makes in its place, until `answers`. */
  losePatience(answers: () => boolean): void {
    const { random } = this.#options;
    this.#after(patienceMinMs + random.below(patienceSpreadMs), () => {
      if (answers()) return;
      this.breakStream();
      this.losePatience(answers);
    });
  }

  /** Something about the node and each pod changes that has to be written down. */
  reportAgain(): void {
    this.#reports++;
    this.#stream?.say({ $case: "nodeReport", value: this.#report() });
    for (const pod of this.pods.values()) {
      pod.message = `report ${this.#reports}`;
      this.#changed(pod);
    }
  }

  /** The host's disk takes nothing for so long: what is assigned meanwhile is written down, and acted on, only then. */
  stallDisk(forMs: number): void {
    if (this.#stalled) return;
    this.#options.note(`its disk takes nothing for ${forMs} ms`);
    this.#stalled = true;
    this.#options.time.schedule(forMs, () => this.endStall());
  }

  endStall(): void {
    this.#stalled = false;
    for (const run of this.#unwritten.splice(0)) run();
  }

  /** The model of an agent has no journal that could fail. */
  fillDisk(forMs: number): void {
    this.stallDisk(forMs);
  }

  /** The model of an agent measures no time by the wall clock. */
  jumpWallClock(): void {}

  calm(): void {
    this.endStall();
    this.heal();
  }

  crashContainer(): void {
    const running = [...this.pods.values()].filter((pod) => pod.running);
    if (running.length > 0) this.#options.random.pick(running).end(137, "OOMKilled");
  }

  #dialLater(): void {
    this.#failures++;
    const capMs = Math.min(reconnectCapMs, reconnectBaseMs * 2 ** this.#failures);
    this.#after(this.#options.random.next() * capMs, () => this.#dial());
  }

  #dial(): void {
    const { dial, name } = this.#options;
    if (this.#stream !== undefined) return;
    const server = this.way.open ? dial(name) : undefined;
    if (server === undefined) {
      this.#dialLater();
      return;
    }
    const stream = new SimStream({
      way: this.way,
      onMessage: (message) => {
        const take = (): void => {
          if (this.#up && this.#stream === stream) this.#take(message);
        };
        const written = message.$case === "snapshot" || message.$case === "delta";
        if (this.#stalled && written) this.#unwritten.push(take);
        else take();
      },
      onEnd: (why) => {
        if (this.#stream !== stream) return;
        this.#options.note(`its stream ends: ${why}`);
        this.#stream = undefined;
        this.#heartbeat();
        this.#dialLater();
      },
    });
    this.#stream = stream;
    this.#told.clear();
    stream.serve(server.handler, server.dead, server.gate);
    stream.say({ $case: "hello", value: this.#hello() });
    this.#heartbeat = this.#after(welcomeTimeoutMs, () => {
      if (this.#stream !== stream) return;
      this.#drop();
      this.#dialLater();
    });
  }

  #drop(): void {
    const { random, time } = this.#options;
    const stream = this.#stream;
    this.#stream = undefined;
    this.#heartbeat();
    // Mostly the coordinator hears of it; sometimes only by the heartbeats that don't come.
    const afterMs = random.chance(0.7) ? this.way.delayMs() : random.below(60_000);
    stream?.leave((notice) => time.schedule(Math.round(afterMs), notice));
  }

  #take(message: Downward): void {
    switch (message.$case) {
      case "welcome":
        this.#failures = 0;
        this.#beat(message.value.heartbeatIntervalMs);
        break;
      case "snapshot": {
        const { revision, pods } = message.value;
        if (revision < this.#journal.revision) {
          this.#wentBack(revision);
          break;
        }
        const uids = new Set(pods.map(({ uid }) => uid));
        this.#journal = { revision, uids };
        for (const pod of pods) this.#assign(pod);
        for (const pod of [...this.pods.values()]) if (!uids.has(pod.uid)) this.#unassign(pod.uid);
        break;
      }
      case "delta": {
        const { revision, upserts, removals } = message.value;
        if (revision <= this.#journal.revision) {
          this.#wentBack(revision);
          break;
        }
        this.#journal.revision = revision;
        for (const pod of upserts) {
          this.#journal.uids.add(pod.uid);
          this.#assign(pod);
        }
        for (const uid of removals) {
          this.#journal.uids.delete(uid);
          this.#unassign(uid);
        }
        break;
      }
      default:
        break;
    }
  }

  #wentBack(revision: bigint): void {
    this.#options.witness.violation(
      `node ${this.name} was sent revision ${revision} after ${this.#journal.revision}`,
    );
  }

  #assign(assignment: PodAssignment): void {
    const { witness } = this.#options;
    const known = this.pods.get(assignment.uid);
    // Hosts of the simulation can't run what is poisoned; it is never reported.
    if (assignment.namespace === poisonNamespace) return;
    if (known === undefined) witness.assigned(this.name, assignment);
    const pod = known ?? new SimPod(assignment, this.#host());
    this.pods.set(assignment.uid, pod);
    pod.assignment = assignment;
    if (assignment.stopping) pod.stop();
    this.#changed(pod);
  }

  /** It is stopped if it still runs, and forgotten once nothing of it is left. */
  #unassign(uid: string): void {
    const pod = this.pods.get(uid);
    if (pod === undefined) return;
    if (pod.stage === "removed") this.pods.delete(uid);
    else pod.stop();
  }

  #host(): PodHost {
    const { random, time, skewMs, witness } = this.#options;
    return {
      random,
      nowMs: () => time.nowMs() + skewMs,
      after: (delayMs, run) => this.#after(delayMs, run),
      hasImage: (image) => this.#images.has(image),
      gotImage: (image) => this.#images.add(image),
      registryUp: this.#options.registryUp,
      changed: (pod) => this.#changed(pod),
      ended: (pod, exitCode) => witness.ended(this.name, pod.assignment, exitCode),
      starts: (pod) => witness.starts(this.name, pod.assignment),
      removed: (pod) => {
        witness.removed(this.name, pod.assignment);
        if (!this.#journal.uids.has(pod.uid)) this.pods.delete(pod.uid);
      },
    };
  }

  #changed(pod: SimPod): void {
    if (this.pods.get(pod.uid) !== pod || this.#stream === undefined) return;
    this.#told.set(pod.uid, pod.status());
    if (this.#flushing) return;
    this.#flushing = true;
    this.#after(5 + this.#options.random.below(100), () => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#told.size === 0) return;
    const pods = [...this.#told.values()];
    this.#told.clear();
    this.#stream?.say({ $case: "podStatuses", value: { pods } });
  }

  #beat(intervalMs: number): void {
    this.#heartbeat();
    this.#heartbeat = this.#after(intervalMs, () => {
      const usage = { cpuMilli: 100n, memoryBytes: 1n, pods: this.pods.size };
      this.#stream?.say({
        $case: "heartbeat",
        value: { assignmentRevision: this.#journal.revision, usage },
      });
      this.#beat(intervalMs);
    });
  }

  #hello() {
    return {
      agentVersion: "0.0.0",
      bootId: `boot-${this.#boot}`,
      sessionId: `${this.name}-${++this.#session}`,
      clusterId: "",
      assignmentRevision: this.#journal.revision,
      node: this.#report(),
      pods: [...this.pods.values()].map((pod) => pod.status()),
    } satisfies (ConnectRequest["message"] & { $case: "hello" })["value"];
  }

  #report(): NodeReport {
    const { cpu, labels } = this.#options;
    const allocatable = { cpu, memory: "16Gi", pods: "110", "ephemeral-storage": "100Gi" };
    return {
      capacity: allocatable,
      allocatable,
      labels: { ...labels },
      address: `192.0.2.${this.name.slice(1)}`,
      addresses: [],
      networks: [],
      os: "linux",
      kernel: `6.${this.#reports}`,
      architecture: "amd64",
      containerdVersion: "",
      nerdctlVersion: "",
      conditions: [],
      images: [...this.#images],
      runtimeClasses: [],
      selinux: false,
      claims: [],
    };
  }

  /** Runs only if the host has been up all the while. */
  #after(delayMs: number, run: () => void): () => void {
    const boot = this.#boot;
    return this.#options.time.schedule(Math.round(delayMs), () => {
      if (this.#up && this.#boot === boot) run();
    });
  }
}
