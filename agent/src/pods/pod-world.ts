import type { Clock } from "../clock.ts";
import type { PodNetwork } from "../network/network.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { BackOffLimits } from "./back-off.ts";
import type { RestartLimits } from "./container-memory.ts";
import type { Gate } from "./gate.ts";
import type { ImageStore } from "./image-store.ts";
import type { PodMemory } from "./pod.ts";
import type { PodFiles } from "./pod-files.ts";
import type { PodStatus } from "./pod-status.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";
import type { Step } from "./step.ts";

/** What all pods of a host share. */
export interface PodWorld {
  readonly instance: string;
  readonly clock: Clock;
  readonly runtime: ContainerRuntime;
  readonly network: PodNetwork;
  readonly observer: RuntimeObserver;
  readonly images: ImageStore;
  readonly files: PodFiles;
  /** Limits how many containers are being started at one time, and how many stopped or removed. */
  readonly startGate: Gate;
  readonly stopGate: Gate;
  readonly restartLimits: RestartLimits;
  readonly faultBackOff: BackOffLimits;
  readonly events: PodEvents;
}

/** What pods tell. */
export interface PodEvents {
  /** Write it down; a newer memory of the pod replaces one not yet written. Resolves when it is on disk, or can't be. */
  remembered(podUid: string, memory: PodMemory): Promise<void>;
  /** The status differs from the one before. */
  changed(status: PodStatus): void;
  stepped(podUid: string, step: Step, tookMs: number, error: unknown): void;
}
