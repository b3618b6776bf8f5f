import { messageOf } from "@forage/common/message-of";
import { type Random, randomOf } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { watchStore } from "../../coordinator/src/control/store-watchdog.ts";
import type { CoreOptions } from "../../coordinator/src/core.ts";
import { openDirectory } from "../../coordinator/src/destination/open-directory.ts";
import { showStoredHealth } from "../../coordinator/src/follower/stored-health.ts";
import { nodeLimits } from "../../coordinator/src/link/node-limits.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import { openView } from "../../coordinator/src/state/open-view.ts";
import { type FollowedStore, followEtcdStore } from "../../coordinator/src/store/etcd/etcd-follower.ts";
import { type EtcdStoreOptions, openEtcdStore } from "../../coordinator/src/store/etcd/etcd-store.ts";
import { prefixed } from "../../coordinator/src/store/etcd/prefixed.ts";
import { type Store, StoreError } from "../../coordinator/src/store/index.ts";
import type { Clock } from "../../coordinator/src/time/clock.ts";
import { LifeStore } from "../fleet/life-store.ts";
import { clockOf } from "../fleet/process-clock.ts";
import { ProcessGate } from "../fleet/process-gate.ts";
import { type LifeWitness, type Secrets, SimCoordinator, type SimProcess } from "../fleet/sim-coordinator.ts";
import { EtcdLink, type EtcdWay } from "./etcd-link.ts";
import type { SimEtcd } from "./sim-etcd.ts";

/** The prefix of the cluster's keys in etcd. */
export const STORE_PREFIX = "/forage/";

export interface MemberOptions {
  readonly name: string;
  readonly etcd: SimEtcd;
  readonly time: VirtualClock;
  readonly random: Random;
  readonly secrets: Secrets;
  readonly config: CoreOptions["config"];
  /** The difference between its host's wall clock and the simulation's time. */
  readonly skewMs: number;
  readonly witness: Pick<LifeWitness, "up" | "viewListenerFailed"> & {
    readonly writing: (
      member: SimMember,
      ...of: Parameters<LifeWitness["writing"]>
    ) => ReturnType<LifeWitness["writing"]>;
    /** Called when the member has ended because of an error. */
    readonly ended: (member: SimMember, error: unknown) => void;
  };
  /** Reports whether this member can reach the named coordinator, and that coordinator leads and decides. */
  readonly asksWhetherDecides: (member: SimMember, leader: string) => boolean;
  readonly note: (what: string) => void;
}

/** A followed store and the view of it. */
interface Following {
  readonly store: FollowedStore;
  readonly state: ClusterView;
  readonly stopHealth: () => void;
  /** Whether the leader has answered that it decides. */
  isProven: boolean;
}

interface Life extends SimProcess {
  readonly number: number;
  readonly clock: Clock;
  readonly random: Random;
  following?: Following;
  coordinator?: SimCoordinator;
  /** The leader, as far as this follower knows. */
  leader?: string;
}

/** Followers report to the leader at this interval. */
const REPORT_MS = 2_000;
const RESTART_MIN_MS = 500;
const RESTART_SPREAD_MS = 3_000;

/**
 * One of several coordinators on a host of its own, over all of its lives. It follows, leads, dies and starts as the
 * program does.
 */
export class SimMember {
  readonly name: string;
  readonly way: EtcdWay = { cut: false, latencyMs: 5, lossShare: 0 };
  /** Aborted when the member is cut off from agents. Each cut replaces it. */
  agents = new AbortController();
  readonly #options: MemberOptions;
  #lives = 0;
  #life: Life;
  #over = false;

  constructor(options: MemberOptions) {
    this.#options = options;
    this.name = options.name;
    this.#life = this.#start();
  }

  get dead(): boolean {
    return this.#life.life.signal.aborted;
  }

  get life(): AbortSignal {
    return this.#life.life.signal;
  }

  get gate(): ProcessGate {
    return this.#life.gate;
  }

  /** The deciding part, if this member leads as far as it knows. */
  get leading(): SimCoordinator | undefined {
    const { coordinator } = this.#life;
    return coordinator?.up ? coordinator : undefined;
  }

  /** Its copy of the store while it follows. */
  get following(): Following | undefined {
    return this.dead || this.#life.coordinator !== undefined ? undefined : this.#life.following;
  }

  /** Whether it decides without waiting for nodes, because it has followed a coordinator that decided. */
  get isProven(): boolean {
    return this.#life.following?.isProven ?? false;
  }

  /** The name of the coordinator to which it forwards calls. */
  get leader(): string | undefined {
    return this.#life.leader;
  }

  /** Kills the process like kill -9. It restarts unless the world has ended. */
  kill(): void {
    if (this.dead) return;
    this.#options.note("dies");
    this.#life.life.abort();
    const { time, random } = this.#options;
    time.schedule(RESTART_MIN_MS + random.below(RESTART_SPREAD_MS), () => {
      if (!this.#over) this.#life = this.#start();
    });
  }

  /** Ends the member for good. */
  end(): void {
    this.#over = true;
    this.#life.life.abort();
  }

  #start(): Life {
    const { time, random, skewMs } = this.#options;
    const gate = new ProcessGate(time);
    const life = new AbortController();
    const process: Life = {
      ...{ gate, life },
      number: ++this.#lives,
      clock: clockOf(time, life.signal, skewMs, gate),
      random: randomOf(random.below(2 ** 31)),
    };
    this.#serve(process).catch((error: unknown) => this.#fail(process, error));
    return process;
  }

  #fail({ life }: Life, error: unknown): void {
    if (life.signal.aborted) return;
    this.#options.note(`ends: ${messageOf(error)}`);
    this.#options.witness.ended(this, error);
    this.kill();
  }

  async #serve(life: Life): Promise<void> {
    const opened = await this.#openOrFollow(life);
    if (!("lead" in opened)) return this.#lead(life, opened);
    const following = await this.#follow(life, opened);
    life.following = following;
    this.#report(life, following);
    await opened.lead(({ holder }) => {
      life.leader = holder;
    });
    this.#options.note("takes the lead");
    this.#lead(life, opened, following);
  }

  /** Opens the store to lead. Like the program, opens it again to follow if another coordinator leads. */
  async #openOrFollow(life: Life): Promise<Store | FollowedStore> {
    let isOther = false;
    const onStandby = (): never => {
      isOther = true;
      throw new StoreError("LOCKED", "another coordinator leads");
    };
    try {
      return await openEtcdStore({ ...this.#storeOptions(life), onStandby });
    } catch (error) {
      if (!isOther) throw error;
      return followEtcdStore(this.#storeOptions(life));
    }
  }

  #storeOptions({ gate, life, random, clock, number }: Life): EtcdStoreOptions {
    const { etcd, time } = this.#options;
    const link = new EtcdLink({ etcd, way: this.way, time, random, gate, life: life.signal });
    return {
      etcd: prefixed(link, STORE_PREFIX),
      self: { holder: this.name, name: this.name },
      ...{ clock, random: random.next, create: "refuse" },
      newId: () => `${this.name}.${number}.${random.below(2 ** 31)}`,
    };
  }

  async #follow(life: Life, store: FollowedStore): Promise<Following> {
    const { config, time, witness } = this.#options;
    const onFatal = (error: unknown): void => this.#fail(life, error);
    this.#watch(life, store);
    const log = pino({ level: "error" }, { write: (line) => witness.viewListenerFailed(line) });
    const { state } = await openView(
      { store: this.#ownStore(life, store), log, onFatal },
      { record: () => {} },
      life.life.signal,
    );
    const { recoveryMs } = nodeLimits(config);
    const { monotonicMs } = life.clock;
    const defer = (run: () => void): void => void time.schedule(0, () => life.life.signal.aborted || run());
    this.#options.note(`follows from revision ${store.revision} on`);
    const stopHealth = showStoredHealth({ state, monotonicMs, recoveryMs, defer });
    return { store, state, stopHealth, isProven: false };
  }

  #report(life: Life, following: Following): void {
    if (life.coordinator !== undefined || life.life.signal.aborted) return;
    const { leader } = life;
    following.isProven ||= leader !== undefined && this.#options.asksWhetherDecides(this, leader);
    life.clock.schedule(REPORT_MS, () => this.#report(life, following));
  }

  #watch(life: Life, store: Store): void {
    watchStore({ store, clock: life.clock, onBroken: (error) => this.#fail(life, error) });
  }

  #lead(life: Life, store: Store, following?: Following): void {
    const { config, time, secrets, skewMs, note, witness } = this.#options;
    if (following === undefined) this.#watch(life, store);
    const defer = (run: () => void): void => void time.schedule(0, run);
    const { state, isProven = false } = following ?? {};
    life.coordinator = new SimCoordinator({
      ...{ number: life.number, durable: store, time, random: life.random, secrets, config, skewMs, note },
      ...this.#storeTimes(life),
      process: life,
      ...(state && { view: { state, isProven, directory: openDirectory(state, { config, defer }) } }),
      witness: {
        ...witness,
        up: (coordinator) => {
          following?.stopHealth();
          witness.up(coordinator);
        },
        writing: (...write) => witness.writing(this, ...write),
        died: () => {},
        fatal: (error) => this.#fail(life, error),
      },
    });
  }

  /**
   * Returns the store as the process sees it. Reads are answered from its own memory, one turn of the event loop later.
   */
  #ownStore(life: Life, durable: Store): Store {
    const { time } = this.#options;
    const die = (): void => life.life.abort();
    const witness = () => () => {};
    return new LifeStore({
      ...{ durable, time, die, witness, gate: life.gate, life: life.life.signal, ...this.#storeTimes(life) },
      delayMs: () => life.random.next(),
      full: () => false,
    });
  }

  #storeTimes({ random }: Life) {
    return { storeDelayMs: () => random.next(), diskFull: () => false, fate: () => "done" as const };
  }
}
