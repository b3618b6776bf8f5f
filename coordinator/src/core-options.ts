import type { Log } from "@forage/common/log";
import type { ActingTime } from "./acting-time/acting-time.ts";
import type { AuditLog } from "./audit/audit-log.ts";
import type { Authority, AuthorityRoll } from "./authority/authority.ts";
import type { Backups } from "./backups/open-backups.ts";
import type { OpenedIssuer } from "./certificates/open-issuer.ts";
import type { Config } from "./config.ts";
import type { Control } from "./control/control.ts";
import type { EventStore } from "./events/recorder.ts";
import type { FollowedView } from "./follower/followed-view.ts";
import type { LivenessStats } from "./link/liveness-stats.ts";
import type { BuiltInServices } from "./model/built-in-service.ts";
import type { IdentityIssuer } from "./objects/identity-issuer.ts";
import type { Vault } from "./objects/vault.ts";
import type { ReadKeyFiles } from "./peers/enroll-coordinator.ts";
import type { ServicesOptions } from "./services.ts";
import type { ClusterView } from "./state/cluster-view.ts";
import type { Store } from "./store/index.ts";
import type { Clock } from "./time/clock.ts";

export interface CoreOptions {
  readonly config: Pick<
    Config,
    | "autoscaling"
    | "rollout"
    | "profile"
    | "events"
    | "services"
    | "clusterDomain"
    | "heartbeatIntervalSeconds"
    | "nodes"
    | "nodeCertificates"
    | "rebalance"
  >;
  readonly store: Store;
  readonly epoch: number;
  readonly lineage: string;
  readonly clusterId: string;
  /**
   * The addresses (HOST:PORT) at which hosts reach the coordinator, the preferred one first.
   * Default: none.
   */
  readonly reachableAt?: readonly string[];
  /** Reads the keys that further coordinators need to join. Default: no coordinator can join. */
  readonly readKeyFiles?: ReadKeyFiles | undefined;
  readonly authority: Authority;
  /** The replacement of the authority. Default: not possible. */
  readonly authorityRoll?: AuthorityRoll | undefined;
  readonly vault: Vault;
  readonly issuer: IdentityIssuer;
  /** The audit log. Default: none. */
  readonly audit?: AuditLog;
  /** The backups. Default: none can be made. */
  readonly backups?: Pick<Backups, "directory"> | undefined;
  /**
   * The issuer of certificates for hostnames whose routes name no secret; undefined if there is
   * none.
   */
  readonly certificateIssuer?: OpenedIssuer | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** The kinds of workloads whose pods another component creates and stops. */
  readonly foreignKinds?: readonly string[] | undefined;
  /** Services of other components of the coordinator, to which routes can refer. */
  readonly builtIn?: BuiltInServices | undefined;
  /**
   * Whether agents measure the usage of every pod for display. Default: only of autoscaled pods.
   */
  readonly usageOfAllPods?: boolean | undefined;
  /** A view that already follows the store, with its open look-ups. Default: a new view. */
  readonly view?: FollowedView | undefined;
  /**
   * Before this resolves, no pods and runs are created and no pods are placed, so that a workload
   * that overloads the coordinator can be deleted.
   */
  readonly started?: Promise<void> | undefined;
  /** Returns this many random lowercase letters and digits. */
  readonly randomName: (length: number) => string;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Schedules work after the current task. */
  readonly defer: (run: () => void) => void;
  readonly onFatal: (error: unknown) => void;
}

export interface Core {
  /** The store for reconcilers. It refuses writes if the store was rolled back. */
  readonly store: Store;
  readonly state: ClusterView;
  readonly events: EventStore;
  readonly control: Control;
  /** The clock that excludes time in which the coordinator could not act. */
  readonly time: ActingTime;
  /** The services for calls. */
  readonly services: ServicesOptions;
  readonly liveness: LivenessStats;
  /** Reports whether the controllers make decisions. */
  readonly decides: () => boolean;
  /** Returns the reason why the controllers make no decisions; undefined if they do. */
  readonly refusal: () => string | undefined;
  /** Stops judging nodes by their heartbeats, because their streams are about to end. */
  stopSessions(): void;
  /** Stops the controllers, after steps in progress have finished. */
  close(): Promise<void>;
}
