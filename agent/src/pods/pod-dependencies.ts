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
  /** Limits how many containers start at the same time. */
  readonly startGate: Semaphore;
  /** Limits how many containers are stopped or removed at the same time. */
  readonly stopGate: Semaphore;
  readonly restartLimits: RestartLimits;
  readonly faultBackOff: BackOff;
  readonly events: PodEvents;
}

/** The facts about this host that pods can refer to. */
export interface HostFacts {
  readonly nodeName: string;
  /** The addresses at which other hosts reach this host: at most one of each family, the preferred one first. */
  readonly addresses: readonly string[];
  /** Quantities by resource name. */
  readonly allocatable: () => Readonly<Record<string, string>>;
  /**
   * Returns the reason if free disk space is below the reserve, so that pods that have never run here can't start now.
   */
  readonly diskPressure?: () => string | undefined;
  /** Whether containers keep stdout and stderr separate if their pod does not specify it. */
  readonly separateStreams?: boolean;
}

/** Receives the events of pods. */
export interface PodEvents {
  /**
   * Writes the memory to disk; a newer memory of the pod replaces one that is not yet written. Resolves to whether this
   * or a newer memory is on disk.
   */
  remembered(podUid: string, memory: PodMemory): Promise<boolean>;
  /** Called for a pod that is over and whose memory could not be written. Rejects if it still can't be written. */
  over(podUid: string, memory: PodMemory): Promise<void>;
  /**
   * Called when the pod has been removed from the host completely. Resolves when no restart of the agent can start the
   * pod again, and rejects if one could.
   */
  removed(podUid: string, memory: PodMemory): Promise<void>;
  /** Called when the memory of a pod was lost and has been rebuilt from the kernel and the runtime. */
  recovered(podUid: string): void;
  /** Called when the pod's status differs from the previous one. */
  changed(status: PodStatus): void;
  /** Called when a pre_stop hook failed. The container is stopped all the same. */
  hookFailed(podUid: string, container: string, message: string): void;
  stepped(podUid: string, step: Step, tookMs: number, error: unknown): void;
}
