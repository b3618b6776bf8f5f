import type { Random } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { Direction, NodeLink } from "./network.ts";
import type { ProcessGate } from "./process-gate.ts";
import type { Handler } from "./stream.ts";

export interface NodeOptions {
  readonly name: string;
  readonly cpu: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly time: VirtualClock;
  readonly random: Random;
  readonly skewMs: number;
  /** Returns the living coordinator if it accepts calls. */
  readonly dial: (node: string) => AcceptingCoordinator | undefined;
  readonly registryUp: () => boolean;
  readonly witness: NodeWitness;
  readonly note: (what: string) => void;
}

/** A coordinator that accepts calls. */
export interface AcceptingCoordinator {
  readonly handler: Handler;
  readonly dead: AbortSignal;
  readonly gate: ProcessGate;
}

/** Receives events of hosts. */
export interface NodeWitness {
  /** Called when a pod is assigned to the node. */
  assigned(node: string, pod: PodAssignment): void;
  starts(node: string, pod: PodAssignment): void;
  ended(node: string, pod: PodAssignment, exitCode: number): void;
  removed(node: string, pod: PodAssignment): void;
  violation(what: string): void;
}

/** A fault of a host that lasts for a time. */
export type HostTrouble =
  | "calls-fail"
  | "calls-time-out"
  | "events-are-lost"
  | "starts-fail"
  | "pulls-fail"
  | "probes-fail"
  | "mounts-hang";

/** One host with an agent, as a simulated world drives it. */
export interface FleetNode {
  readonly name: string;
  readonly way: NodeLink;
  /** The uids of the pods that its agent knows. */
  readonly pods: { readonly size: number; has(uid: string): boolean };
  /** The number of its running containers that will end without being stopped. */
  readonly ending: number;
  /** The number of ended containers that its agent still reports as running. */
  readonly endedUnnoticed: number;
  /** Crashes the host without notice. */
  crash(): void;
  boot(): void;
  /** Ends the agent and restarts it after the time. Containers keep running. */
  restartAgent(downMs?: number): void;
  /** Cuts the connection to the coordinator in these directions. */
  partition(...directions: readonly Direction[]): void;
  heal(): void;
  breakStream(): void;
  /** Closes connections that don't answer, one after another, until `answers` returns true. */
  losePatience(answers: () => boolean): void;
  /** Changes something about the node and each pod that the coordinator has to write. */
  reportAgain(): void;
  /** Delays the agent's writes for the time. */
  stallDisk(forMs: number): void;
  /** Makes the agent's writes fail for the time. */
  fillDisk(forMs: number): void;
  /** Sets the wall clock of the host. */
  jumpWallClock(byMs: number): void;
  /** Makes calls to the host's runtime, network or volumes fail for the time. */
  troubleHost(trouble: HostTrouble, forMs: number): void;
  /** Removes one running container without the agent. */
  removeContainer(): void;
  /** Ends all faults of the disk, the host and the connection. */
  calm(): void;
  /** Ends one container from outside. */
  crashContainer(): void;
}
