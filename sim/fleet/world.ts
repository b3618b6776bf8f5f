import { type Random, randomOf } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import type { Profile } from "@forage/scheduler";
import { readConfig } from "../../coordinator/src/config.ts";
import type { CoreOptions } from "../../coordinator/src/core.ts";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import { nodeKey } from "../../coordinator/src/model/keys.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import {
  type Compare,
  createMemoryStore,
  type Op,
  type Store,
  type WatchBatch,
} from "../../coordinator/src/store/index.ts";
import { Clients } from "./clients.ts";
import type { FleetNode, NodeOptions } from "./fleet-node.ts";
import { HostRules } from "./host-rules.ts";
import { wrongStops } from "./intent-rules.ts";
import type { Fate } from "./life-store.ts";
import { isOfPoison } from "./poison-store.ts";
import { clockOf } from "./process-clock.ts";
import { type Secrets, SimCoordinator } from "./sim-coordinator.ts";
import { StoreRules } from "./store-rules.ts";
import type { Trace } from "./trace.ts";
import { Violation } from "./violation.ts";

export interface WorldOptions {
  readonly time: VirtualClock;
  readonly random: Random;
  readonly trace: Trace;
  readonly secrets: Secrets;
  /** Returns the result of the nth write, if it isn't random. */
  readonly fateOf?: (write: number) => Fate;
  /** Settings that replace the defaults. */
  readonly nodes?: Partial<CoreOptions["config"]["nodes"]>;
  /** Settings of services' addresses that replace the defaults. */
  readonly services?: Partial<CoreOptions["config"]["services"]>;
  /** Returns the labels that the operator has given the node. Default: none. */
  readonly labelsOf?: (node: string) => Readonly<Record<string, string>>;
  readonly certificateIssuer?: CoreOptions["certificateIssuer"];
  readonly makeNode: (options: NodeOptions) => FleetNode;
}

/** A fleet with a durable store, the successive lives of a coordinator, nodes, clients, and rules for all of them. */
export class World {
  readonly time: VirtualClock;
  readonly random: Random;
  readonly trace: Trace;
  readonly nodes: FleetNode[] = [];
  readonly clients: Clients;
  readonly rules: StoreRules;
  readonly durable: Store;
  violation: Violation | undefined;
  coordinator: SimCoordinator;
  registryUp = true;
  /** The node that doesn't return in the end. */
  lost: FleetNode | undefined;
  /** The probability that a write kills the coordinator, while there are faults. */
  crashShare = 0;
  storeSlowMs = 2;
  /** The time until which the coordinator's disk doesn't answer. */
  stalledUntilMs = 0;
  diskFull = false;
  /** Whether `fateOf` decides the result of the coordinator's writes. */
  fatesGoOn = true;
  /** The time for which the coordinator stays down after it died. Default: some seconds. */
  downMs: number | undefined;
  writes = 0;
  /** The revision of the last write that concerns a valid object. */
  soundRevision = 0;
  #wallJumpMs = 0;
  /** Keys of invalid records. The rules ignore them. */
  readonly #poisoned = new Set<string>();
  readonly #options: WorldOptions;
  readonly #profile: Profile;
  readonly #config: CoreOptions["config"];
  readonly #hostRules: HostRules;
  readonly #end = new AbortController();
  #lives = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.time = options.time;
    this.random = options.random;
    this.trace = options.trace;
    this.#profile = this.random.pick<Profile>(["pack", "kube-most", "kube-least"]);
    const defaults = readConfig(["--data-dir", "/nonexistent"], {});
    this.#config = {
      ...defaults,
      nodes: { ...defaults.nodes, ...options.nodes },
      services: { ...defaults.services, ...options.services },
      rollout: { progressDeadlineSeconds: 120, placementDeadlineSeconds: 20, stableSeconds: 1 },
    };
    const blame = (what: string): void => this.blame(what);
    this.rules = new StoreRules(blame);
    this.#hostRules = new HostRules(blame, (uid, exitCode) => this.rules.jobs.ended(uid, exitCode));
    this.durable = createMemoryStore({ clock: clockOf(this.time, this.#end.signal, 0) });
    this.clients = new Clients({
      time: this.time,
      coordinator: () => (this.coordinator.up ? this.coordinator : undefined),
      blame,
      note: (what) => this.trace.add("call", what),
    });
    void this.#follow();
    const count = 3 + this.random.below(3);
    for (let index = 1; index <= count; index++) this.#addNode(`n${index}`);
    this.coordinator = this.#bear();
  }

  /** Uids of pods of which a container has ended or that were removed. */
  get gone(): ReadonlySet<string> {
    return this.#hostRules.gone;
  }

  /** Makes the coordinator's disk stall for a time. */
  stallDisk(forMs: number): void {
    this.trace.add("world", `the disk stalls for ${forMs} ms`);
    this.stalledUntilMs = this.time.nowMs() + forMs;
  }

  /** Makes the coordinator's disk reject writes for a time. */
  fillDisk(forMs: number): void {
    this.trace.add("world", `the disk is full for ${forMs} ms`);
    this.diskFull = true;
    this.time.schedule(forMs, () => {
      this.diskFull = false;
    });
  }

  /** Sets the wall clock of the coordinator's machine, for this life and all later ones. */
  jumpWallClock(byMs: number): void {
    this.trace.add("world", `the wall clock is set by ${byMs} ms`);
    this.#wallJumpMs += byMs;
    this.coordinator.gate.wallJumpMs += byMs;
    this.rules.cron.clockSet(byMs);
  }

  /** Stores objects that could not be applied because they are invalid. They must affect no other object. */
  poison(what: string, ops: readonly Op[]): void {
    this.trace.add("world", `poison: ${what}`);
    for (const op of ops) if (op.type === "put") this.#poisoned.add(op.key);
    void this.durable.txn([], ops);
  }

  blame(what: string): void {
    if (this.violation !== undefined) return;
    this.violation = new Violation(what);
    this.trace.add("!!!", what);
  }

  /** Ends all faults, except that one node may stay away for good. */
  calm(): void {
    this.trace.add("world", "faults end");
    this.lost = this.random.chance(0.3) ? this.random.pick(this.nodes) : undefined;
    this.lost?.crash();
    this.crashShare = 0;
    this.storeSlowMs = 2;
    this.stalledUntilMs = 0;
    this.diskFull = false;
    this.coordinator.gate.release();
    this.registryUp = true;
    for (const node of this.nodes) {
      node.way.latencyMs = 5;
      node.calm();
      if (node !== this.lost) node.boot();
    }
  }

  end(): void {
    this.#end.abort();
    this.coordinator.die();
  }

  #addNode(name: string): void {
    const random = randomOf(this.random.below(2 ** 31));
    this.nodes.push(
      this.#options.makeNode({
        name,
        cpu: this.random.pick(["4", "6", "8"]),
        labels: { zone: this.random.pick(["a", "b"]) },
        time: this.time,
        random,
        skewMs: this.random.below(4_000) - 2_000,
        dial: (node) => {
          const { coordinator } = this;
          if (!coordinator.up) return undefined;
          return { handler: coordinator.handler(node), dead: coordinator.life, gate: coordinator.gate };
        },
        registryUp: () => this.registryUp,
        witness: this.#hostRules,
        note: (what) => this.trace.add(name, what),
      }),
    );
    const labels = { ...this.#options.labelsOf?.(name) };
    const record = NodeRecord.fromPartial({ name, serials: ["01"], labels });
    const op: Op = { type: "put", key: nodeKey(name), value: encodeRecord(NodeRecord, record) };
    void this.durable.txn([], [op]);
  }

  #bear(): SimCoordinator {
    const number = ++this.#lives;
    const random = randomOf(this.random.below(2 ** 31));
    return new SimCoordinator({
      number,
      wallJumpMs: this.#wallJumpMs,
      durable: this.durable,
      time: this.time,
      random,
      secrets: this.#options.secrets,
      certificateIssuer: this.#options.certificateIssuer,
      config: { ...this.#config, profile: this.#profile },
      skewMs: random.below(3_000),
      storeDelayMs: () =>
        this.storeSlowMs * random.next() + Math.max(0, this.stalledUntilMs - this.time.nowMs()),
      diskFull: () => this.diskFull,
      fate: () => this.#fate(),
      note: (what) => this.trace.add(`c${number}`, what),
      witness: {
        writing: (state, compares, ops) => this.#writing(state, compares, ops),
        up: (coordinator) => this.clients.resume(coordinator),
        died: () => {
          if (this.#end.signal.aborted) return;
          this.time.schedule(this.downMs ?? 200 + this.random.below(6_000), () => {
            if (!this.#end.signal.aborted) this.coordinator = this.#bear();
          });
        },
        viewListenerFailed: (line) => this.blame(`a listener of the view failed: ${line}`),
        fatal: (error) =>
          this.blame(`the coordinator can't go on: ${error instanceof Error ? error.stack : error}`),
      },
    });
  }

  #fate(): Fate {
    this.writes++;
    const { fateOf } = this.#options;
    if (fateOf !== undefined) return this.fatesGoOn ? fateOf(this.writes) : "done";
    if (!this.random.chance(this.crashShare)) return "done";
    return this.random.chance(0.5) ? "die-before" : "die-after";
  }

  #writing(state: ClusterView | undefined, _compares: readonly Compare[], ops: readonly Op[]) {
    const wrong = state && wrongStops(state, ops);
    return (result: { readonly succeeded: boolean; readonly revision: number }): void => {
      if (!result.succeeded) return;
      this.trace.add("store", `${result.revision}: ${ops.map(describeOp).join(", ")}`);
      if (wrong !== undefined) this.blame(wrong);
    };
  }

  async #follow(): Promise<void> {
    for await (const batch of this.durable.watch("", 1, this.#end.signal)) this.#apply(batch);
  }

  #apply({ events, revision }: WatchBatch): void {
    const keyOf = (event: (typeof events)[number]): string =>
      event.type === "put" ? event.record.key : event.key;
    const sound = events.filter((event) => !this.#poisoned.has(keyOf(event)) && !isOfPoison(keyOf(event)));
    const areOf = (prefix: string): boolean => sound.every((event) => keyOf(event).startsWith(prefix));
    // Invalid objects cause events, which replace others. Agents report the images of their hosts every ten minutes.
    const isQuiet = (this.#poisoned.size > 0 && areOf("events/")) || areOf("reports/");
    if (!isQuiet) this.soundRevision = revision;
    this.rules.apply({ events: sound, revision });
  }
}

function describeOp(op: Op): string {
  if (op.type === "put") return `+${op.key}`;
  return `-${op.type === "delete" ? op.key : op.prefix}`;
}
