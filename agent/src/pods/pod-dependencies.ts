import type { BackOff } from "@forage/common/back-off";
import type { Semaphore } from "@forage/common/semaphore";
import type { Clock } from "../clock.ts";
import type { PodDevices } from "../devices/devices.ts";
import type { HookOptions } from "../hooks/run-hook.ts";
import type { PodNetwork } from "../network/network.ts";
import type { NetworkFiles } from "../network/network-files.ts";
import type { ProbeRunner } from "../probes/probe-runner.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { PodVolumes } from "../volumes/volumes.ts";
import type { RestartLimits } from "./container-memory.ts";
import type { PodStatus } from "./decide/pod-status.ts";
import type { ImageStore } from "./image-store.ts";
import type { PodMemory } from "./pod.ts";
import type { PodFiles } from "./pod-files.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";
import type { Step } from "./step.ts";

/** The dependencies that all pods of a host share. */
export interface PodDependencies {
  readonly instance: string;
  readonly clock: Clock;
  readonly runtime: ContainerRuntime;
  readonly network: PodNetwork;
  readonly networkFiles: NetworkFiles;
  readonly devices: PodDevices;
  readonly volumes: PodVolumes;
  readonly observer: RuntimeObserver;
  readonly images: ImageStore;
  readonly files: PodFiles;
  readonly probes: ProbeRunner;
  readonly hooks: HookOptions;
  readonly host: HostFacts;
  /** Limits how many containers are being started at one time, and how many stopped or removed. */
  readonly startGate: Semaphore;
  readonly stopGate: Semaphore;
  readonly restartLimits: RestartLimits;
  readonly faultBackOff: BackOff;
  readonly events: PodEvents;
}

/** The facts about their host that pods can refer to. */
export interface HostFacts {
  readonly nodeName: string;
  /** The addresses at which others reach this host: at most one of each family, the preferred one first. */
  readonly addresses: readonly string[];
  /** Quantities by resource name. */
  readonly allocatable: () => Readonly<Record<string, string>>;
  /** Returns the reason why pods that have never run here can't start now: the free disk space is below the reserve. */
  readonly diskPressure?: () => string | undefined;
  /** Whether containers keep stdout and stderr apart whose pods don't say. */
  readonly separateStreams?: boolean;
}

/** The pods' events. */
export interface PodEvents {
  /** Write it down; a newer memory of the pod replaces one not yet written. Resolves to whether it, or a newer one, is on disk. */
  remembered(podUid: string, memory: PodMemory): Promise<boolean>;
  /** Called for a pod that is over and whose memory could not be written. Rejects if it can't be written now either. */
  over(podUid: string, memory: PodMemory): Promise<void>;
  /**
   * Called when nothing of the pod is left on the host. Resolves when no restart of the agent can start it again, and rejects if
   * one could.
   */
  removed(podUid: string, memory: PodMemory): Promise<void>;
  /** The pod's memory was lost, and was read back from the kernel and the runtime. */
  recovered(podUid: string): void;
  /** The status differs from the one before. */
  changed(status: PodStatus): void;
  /** A pre_stop hook; the container is stopped all the same. */
  hookFailed(podUid: string, container: string, message: string): void;
  stepped(podUid: string, step: Step, tookMs: number, error: unknown): void;
}
