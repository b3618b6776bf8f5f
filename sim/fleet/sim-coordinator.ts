import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import type { Log } from "@forage/common/log";
import { messageOf } from "@forage/common/message-of";
import type { Random } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { nodeId } from "@forage/identity";
import { CertificateAuthority } from "@forage/identity/ca";
import { ConnectResponse } from "@forage/proto/forage/agent/v1/agent";
import { pino } from "pino";
import { forageService } from "../../coordinator/src/api/forage/service.ts";
import { type Core, type CoreOptions, startCore } from "../../coordinator/src/core.ts";
import { connect } from "../../coordinator/src/link/connect.ts";
import { IdentityIssuer } from "../../coordinator/src/objects/identity-issuer.ts";
import { openVault, type ResealResult, reseal } from "../../coordinator/src/objects/open-vault.ts";
import type { Vault } from "../../coordinator/src/objects/vault.ts";
import type { CallContext } from "../../coordinator/src/rpc/caller.ts";
import type { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import type { Compare, Op, Store, TxnResult } from "../../coordinator/src/store/index.ts";
import type { Clock } from "../../coordinator/src/time/clock.ts";
import type { ContentStore } from "../../coordinator/src/workspaces/content/content-store.ts";
import { openWorkspaces, type Workspaces } from "../../coordinator/src/workspaces/open-workspaces.ts";
import type { WorkspaceSettings } from "../../coordinator/src/workspaces/settings.ts";
import { WORKSPACE_KIND } from "../../coordinator/src/workspaces/workspace-kind.ts";
import { type Fate, LifeStore } from "./life-store.ts";
import { clockOf } from "./process-clock.ts";
import { ProcessGate } from "./process-gate.ts";
import type { Handler } from "./stream.ts";

export interface CoordinatorOptions {
  /** The number of the life, from 1. */
  readonly number: number;
  readonly durable: Store;
  readonly time: VirtualClock;
  readonly random: Random;
  readonly secrets: Secrets;
  readonly config: CoreOptions["config"];
  /** Default: none. */
  readonly certificateIssuer?: CoreOptions["certificateIssuer"];
  /** Default: it serves no workspaces. */
  readonly workspaces?: SimWorkspaces | undefined;
  readonly skewMs: number;
  /** The time by which the wall clock was set before this life began. Default: 0. */
  readonly wallJumpMs?: number;
  readonly storeDelayMs: () => number;
  /** Reports whether writes are rejected as on a full disk. */
  readonly diskFull: () => boolean;
  readonly fate: () => Fate;
  /** The process that the coordinator runs in. Default: a new one. */
  readonly process?: SimProcess;
  /** A view that follows the store already. Default: a new one. */
  readonly view?: CoreOptions["view"];
  readonly witness: LifeWitness;
  readonly note: (what: string) => void;
}

export interface SimWorkspaces {
  readonly settings: WorkspaceSettings;
  readonly content: ContentStore;
}

export interface SimProcess {
  readonly gate: ProcessGate;
  /** Aborted when the process dies. */
  readonly life: AbortController;
}

/** Receives events of a life. */
export interface LifeWitness {
  /**
   * Called before each write, with the view on which it was based, once there is one. The returned function is called
   * with the result.
   */
  writing(
    state: ClusterView | undefined,
    compares: readonly Compare[],
    ops: readonly Op[],
  ): (result: TxnResult) => void;
  up(life: SimCoordinator): void;
  died(life: SimCoordinator): void;
  /** Called when a subscriber of the view threw an error and so missed changes. */
  viewListenerFailed(line: string): void;
  fatal(error: unknown): void;
}

/**
 * The keys that a cluster has from its beginning. All simulations of a process share them, because making them takes
 * time.
 */
export interface Secrets {
  readonly authority: CertificateAuthority;
  readonly issuer: IdentityIssuer;
  readonly vaultOf: (store: Store) => Promise<Vault>;
  /** Encrypts everything again, as a start with a new first key does. */
  readonly reseal: (store: Store) => Promise<ResealResult>;
}

export async function makeSecrets(): Promise<Secrets> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const bytes = createHash("sha256").update("simulation").digest();
  return {
    authority: await CertificateAuthority.create("sim", { nowMs: Date.now, randomBytes }),
    issuer: new IdentityIssuer({ issuer: "sim", keys: [privateKey] }),
    vaultOf: (store) => openVault([{ id: "sim", bytes }], store),
    reseal: (store) => reseal([{ id: "sim", bytes }], store),
  };
}

/**
 * One life of a coordinator. It consists of the real parts, from the store's view to the agents' streams, on simulated
 * time.
 */
export class SimCoordinator {
  readonly number: number;
  readonly gate: ProcessGate;
  readonly #options: CoordinatorOptions;
  readonly #life: AbortController;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #store: LifeStore;
  #core: Core | undefined;
  #workspaces: Workspaces | undefined;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.number = options.number;
    const { gate, life } = options.process ?? ownProcess(options);
    this.gate = gate;
    this.#life = life;
    this.#clock = clockOf(options.time, this.#life.signal, options.skewMs, this.gate);
    this.#log = loggerOf((line) => {
      if (this.dead) return;
      options.note(line);
      if (line.includes('"event":"view-listener-failed"')) options.witness.viewListenerFailed(line);
    });
    this.#store = new LifeStore({
      durable: options.durable,
      time: options.time,
      life: this.#life.signal,
      die: () => this.die(),
      delayMs: options.storeDelayMs,
      full: options.diskFull,
      gate: this.gate,
      fate: options.fate,
      witness: (compares, ops) => options.witness.writing(this.#core?.state, compares, ops),
    });
    this.#start().catch((error: unknown) => this.#fatal(error));
  }

  get dead(): boolean {
    return this.#life.signal.aborted;
  }

  /** Whether it accepts calls. */
  get up(): boolean {
    return this.#core !== undefined && !this.dead;
  }

  get core(): Core {
    if (this.#core === undefined) throw new Error("the coordinator is not up");
    return this.#core;
  }

  get workspaces(): Workspaces {
    if (this.#workspaces === undefined) throw new Error("the coordinator serves no workspaces");
    return this.#workspaces;
  }

  get life(): AbortSignal {
    return this.#life.signal;
  }

  /** `forest.v1.ForageService` as its clients see it. */
  get forage(): ReturnType<typeof forageService> {
    return forageService(this.core.services.forage);
  }

  /** Returns the handler of a node's stream. */
  handler(node: string): Handler {
    const options = this.core.services.connect;
    return async function* (requests, gone, sendNow) {
      for await (const response of connect(requests, { ...nodeContext(node, gone), sendNow }, options))
        yield Buffer.isBuffer(response) ? ConnectResponse.decode(response) : response;
    };
  }

  /** Kills the process like kill -9. */
  die(): void {
    if (this.dead) return;
    this.#options.note("dies");
    this.#life.abort();
    this.#options.witness.died(this);
  }

  async #start(): Promise<void> {
    const { random, time, config, secrets, durable, view, certificateIssuer, workspaces } = this.#options;
    const life = this.#life.signal;
    const { authority, issuer } = secrets;
    const parts = {
      epoch: 1,
      vault: await secrets.vaultOf(durable),
      clock: this.#clock,
      log: this.#log,
      randomName: (length: number) => nameOf(random, length),
      randomBytes: (count: number) => Uint8Array.from({ length: count }, () => random.below(256)),
      onFatal: (error: unknown) => this.#fatal(error),
    };
    const core = await startCore({
      ...parts,
      config,
      store: this.#store,
      ...(view && { view }),
      certificateIssuer,
      lineage: "lineage-1",
      clusterId: "sim",
      authority,
      issuer,
      ...(workspaces && { foreignKinds: [WORKSPACE_KIND] }),
      defer: (run) =>
        time.schedule(0, () => {
          if (life.aborted) return;
          try {
            run();
          } catch (error) {
            this.#fatal(error);
          }
        }),
    });
    const { state, store, control, services } = core;
    this.#workspaces =
      workspaces &&
      (await openWorkspaces({
        ...{ ...parts, ...workspaces, state, store, time: core.time, unschedulable: control.unschedulable },
        quota: services.operator.namespaceRules,
      }));
    this.#core = core;
    this.#options.note("is up");
    this.#options.witness.up(this);
  }

  #fatal(error: unknown): void {
    if (!this.dead) this.#options.witness.fatal(error);
  }
}

function ownProcess({ time, wallJumpMs = 0 }: CoordinatorOptions): SimProcess {
  const gate = new ProcessGate(time);
  gate.wallJumpMs = wallJumpMs;
  return { gate, life: new AbortController() };
}

function nodeContext(node: string, signal: AbortSignal): CallContext {
  const caller = { type: "node", nodeId: nodeId(node) } as const;
  return { method: "/forage.agent.v1.AgentService/Connect", caller, peer: `${node}:1`, signal };
}

/** Returns the context of an operator's call. */
export function clientContext(signal: AbortSignal): CallContext {
  const caller = { type: "user", name: "sim", grants: [{ role: "admin", namespaces: "*" }] } as const;
  return { method: "", caller, peer: "client:1", signal };
}

const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

function nameOf(random: Random, length: number): string {
  return Array.from({ length }, () => random.pick([...ALPHABET])).join("");
}

function loggerOf(write: (line: string) => void): Log {
  return pino(
    {
      level: "info",
      base: null,
      timestamp: false,
      serializers: { err: (error: unknown) => messageOf(error) },
    },
    { write: (line) => write(line.trimEnd()) },
  );
}
