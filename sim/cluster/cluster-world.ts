import { type Random, randomOf } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { readConfig } from "../../coordinator/src/config.ts";
import type { CoreOptions } from "../../coordinator/src/core.ts";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import { nodeKey } from "../../coordinator/src/model/keys.ts";
import { type FollowedStore, followEtcdStore } from "../../coordinator/src/store/etcd/etcd-follower.ts";
import { type EtcdStoreOptions, openEtcdStore } from "../../coordinator/src/store/etcd/etcd-store.ts";
import { prefixed } from "../../coordinator/src/store/etcd/prefixed.ts";
import type { Op } from "../../coordinator/src/store/index.ts";
import { Clients } from "../fleet/clients.ts";
import type { Fleet } from "../fleet/convergence.ts";
import type { AcceptingCoordinator, FleetNode, NodeOptions } from "../fleet/fleet-node.ts";
import { HostRules } from "../fleet/host-rules.ts";
import { clockOf } from "../fleet/process-clock.ts";
import type { Secrets, SimCoordinator } from "../fleet/sim-coordinator.ts";
import { StoreRules } from "../fleet/store-rules.ts";
import type { Trace } from "../fleet/trace.ts";
import { Violation } from "../fleet/violation.ts";
import { ClusterRules } from "./cluster-rules.ts";
import { directEtcd } from "./direct-etcd.ts";
import { SimEtcd } from "./sim-etcd.ts";
import { SimMember, STORE_PREFIX } from "./sim-member.ts";

export interface ClusterWorldOptions {
  readonly time: VirtualClock;
  readonly random: Random;
  readonly trace: Trace;
  readonly secrets: Secrets;
  readonly members: number;
  /** The error of this coordinator's wall clock. */
  readonly clockOffsetMs: number;
  readonly makeNode: (options: NodeOptions) => FleetNode;
}

const LOOK_MS = 250;
const NODES = 3;
const CALLS_RETRIED: ReadonlySet<string> = new Set(["CONFLICT", "UNAVAILABLE"]);

/** Several coordinators that share one store in etcd, with a fleet, clients, and rules for all of them. */
export class ClusterWorld implements Fleet {
  readonly time: VirtualClock;
  readonly random: Random;
  readonly trace: Trace;
  readonly etcd: SimEtcd;
  readonly members: SimMember[] = [];
  readonly nodes: FleetNode[] = [];
  readonly clients: Clients;
  readonly rules: StoreRules;
  readonly clusterRules: ClusterRules;
  readonly lost = undefined;
  violation: Violation | undefined;
  writes = 0;
  readonly #options: ClusterWorldOptions;
  readonly #config: CoreOptions["config"];
  readonly #hostRules: HostRules;
  readonly #end = new AbortController();
  readonly #routes: Random;
  #observer: FollowedStore | undefined;

  /** Makes the store and starts everything. */
  static async start(options: ClusterWorldOptions): Promise<ClusterWorld> {
    const world = new ClusterWorld(options);
    await world.#begin();
    return world;
  }

  private constructor(options: ClusterWorldOptions) {
    const { time, random, trace } = options;
    this.#options = options;
    this.time = time;
    this.random = random;
    this.trace = trace;
    this.#routes = randomOf(random.below(2 ** 31));
    this.#config = {
      ...readConfig(["--data-dir", "/nonexistent"], {}),
      rollout: { progressDeadlineSeconds: 120, placementDeadlineSeconds: 20, stableSeconds: 1 },
    };
    const blame = (what: string): void => this.blame(what);
    this.etcd = new SimEtcd(time);
    this.rules = new StoreRules(blame);
    this.#hostRules = new HostRules(blame, (uid, exitCode) => this.rules.jobs.ended(uid, exitCode));
    this.clusterRules = new ClusterRules({
      ...{ time, blame, members: () => this.members },
      etcdUp: () => this.etcd.up,
    });
    this.clients = new Clients({
      ...{ time, blame, retried: CALLS_RETRIED },
      coordinator: () => this.#reached(this.members)?.leading,
      note: (what) => trace.add("call", what),
    });
  }

  /** The leader, if there is one and it can write. */
  get coordinator(): SimCoordinator | undefined {
    return this.clusterRules.leader?.leading;
  }

  /** Uids of pods of which a container has ended or that were removed. */
  get gone(): ReadonlySet<string> {
    return this.#hostRules.gone;
  }

  get revision(): number {
    return this.#observer?.revision ?? 0;
  }

  blame(what: string): void {
    if (this.violation !== undefined) return;
    this.violation = new Violation(what);
    this.trace.add("!!!", what);
  }

  /** Cuts agents off from the member for a time. Connected agents lose their connections. */
  cutAgents(member: SimMember, forMs: number): void {
    const { agents } = member;
    agents.abort();
    this.time.schedule(forMs, () => {
      if (member.agents === agents) member.agents = new AbortController();
    });
  }

  /** Ends all faults. */
  calm(): void {
    this.trace.add("world", "faults end");
    this.clusterRules.disturbed();
    this.etcd.up = true;
    for (const member of this.members) {
      Object.assign(member.way, { cut: false, latencyMs: 5, lossShare: 0 });
      member.gate.release();
      if (member.agents.signal.aborted) member.agents = new AbortController();
    }
    for (const node of this.nodes) node.calm();
  }

  end(): void {
    this.#end.abort();
    for (const member of this.members) member.end();
  }

  async #begin(): Promise<void> {
    const { random, members, clockOffsetMs } = this.#options;
    const store = await openEtcdStore(this.#directOptions("maker", "require"));
    const names = Array.from({ length: NODES }, (_, index) => `n${index + 1}`);
    const put = (name: string): Op => {
      const record = NodeRecord.fromPartial({ name, serials: ["01"] });
      return { type: "put", key: nodeKey(name), value: encodeRecord(NodeRecord, record) };
    };
    await store.txn([], names.map(put));
    await store.close();
    const observer = await followEtcdStore(this.#directOptions("observer", "refuse"));
    this.#observer = observer;
    void this.#observe(observer).catch((error: unknown) =>
      this.blame(`the history can't be followed: ${error}`),
    );
    for (let at = 1; at <= members; at++)
      this.members.push(this.#addMember(`c${at}`, random.below(3_000) + (at === 1 ? clockOffsetMs : 0)));
    for (const name of names) this.nodes.push(this.#addNode(name));
    this.#scheduleCheck();
  }

  #directOptions(holder: string, create: "require" | "refuse"): EtcdStoreOptions {
    const clock = clockOf(this.time, this.#end.signal, 0);
    const etcd = prefixed(directEtcd(this.etcd), STORE_PREFIX);
    let ids = 0;
    return {
      ...{ etcd, create, clock, self: { holder, name: holder }, random: () => 0.5 },
      newId: () => `${holder}.${++ids}`,
    };
  }

  async #observe(observer: FollowedStore): Promise<void> {
    for await (const batch of observer.watch("", 1, this.#end.signal)) {
      this.trace.add("store", `${batch.revision}: ${batch.events.length} changes`);
      this.clusterRules.stored(batch);
      this.rules.apply(batch);
    }
  }

  #scheduleCheck(): void {
    this.time.schedule(LOOK_MS, () => {
      if (this.#end.signal.aborted) return;
      this.clusterRules.check();
      const health = this.#observer?.health();
      if (health?.status === "read-only" && (health.reason === "io-error" || health.reason === "lead-lost"))
        this.blame(`the history in etcd was changed: ${health.message}`);
      this.#scheduleCheck();
    });
  }

  #addMember(name: string, skewMs: number): SimMember {
    const { time, secrets } = this.#options;
    const note = (what: string): void => this.trace.add(name, what);
    return new SimMember({
      ...{ name, skewMs, time, secrets, note, etcd: this.etcd, config: this.#config },
      asksWhetherDecides: (asking, leader) => this.#isSeenToDecide(asking, leader),
      random: randomOf(this.random.below(2 ** 31)),
      witness: {
        up: (coordinator) => this.clients.resume(coordinator),
        viewListenerFailed: (line) => this.blame(`a listener of the view failed: ${line}`),
        ended: (member, error) => this.clusterRules.ended(member, error),
        writing: (member, _state, _compares, ops) => {
          this.writes++;
          return (result) => this.clusterRules.acknowledged(member.name, ops, result);
        },
      },
    });
  }

  #addNode(name: string): FleetNode {
    return this.#options.makeNode({
      ...{ name, cpu: "8", labels: {}, time: this.time, skewMs: 0 },
      random: randomOf(this.random.below(2 ** 31)),
      dial: (node) => this.#dial(node),
      registryUp: () => true,
      witness: this.#hostRules,
      note: (what) => this.trace.add(name, what),
    });
  }

  #dial(node: string): AcceptingCoordinator | undefined {
    const reachable = this.members.filter(({ agents }) => !agents.signal.aborted);
    const first = this.#routes.pick(reachable.length === 0 ? this.members : reachable);
    const target = reachable.length === 0 ? undefined : this.#passedOn(first);
    if (target?.leading === undefined) return undefined;
    const dead = AbortSignal.any([first.life, first.agents.signal, target.life]);
    return { handler: target.leading.handler(node), dead, gate: target.gate };
  }

  #isSeenToDecide(asking: SimMember, leader: string): boolean {
    const target = this.members.find(({ name }) => name === leader);
    if (target === undefined || asking.gate.held || target.gate.held) return false;
    return target.leading?.core.decides() ?? false;
  }

  #reached(members: readonly SimMember[]): SimMember | undefined {
    return this.#passedOn(this.#routes.pick(members));
  }

  /**
   * Returns the coordinator that serves a call to this member: the member itself if it leads as far as it knows, otherwise the
   * leader that it knows.
   */
  #passedOn(member: SimMember): SimMember | undefined {
    if (member.dead || member.gate.held) return undefined;
    if (member.leading !== undefined) return member;
    const target = this.members.find(({ name }) => name === member.leader);
    return target?.gate.held ? undefined : target;
  }
}
