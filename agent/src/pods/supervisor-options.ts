import type { BackOff } from "@forage/common/back-off";
import type { Clock } from "../clock.ts";
import type { PodDevices } from "../devices/devices.ts";
import type { PodNetwork } from "../network/network.ts";
import type { NetworkFiles } from "../network/network-files.ts";
import type { RunProbe } from "../probes/run-probe.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import type { PodVolumes } from "../volumes/volumes.ts";
import type { RestartLimits } from "./container-memory.ts";
import type { ImageAccess } from "./image-access.ts";
import type { OtherNodes } from "./image-store.ts";
import type { Pod, PodMemory } from "./pod.ts";
import type { HostFacts, PodEvents } from "./pod-dependencies.ts";
import type { PodFiles } from "./pod-files.ts";

export interface SupervisorOptions {
  readonly instance: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly runtime: ContainerRuntime;
  readonly network: PodNetwork;
  readonly networkFiles: NetworkFiles;
  readonly devices: PodDevices;
  readonly volumes: PodVolumes;
  readonly files: PodFiles;
  /** Runs probes and HTTP hooks. */
  readonly probe: RunProbe;
  readonly host: HostFacts;
  readonly events: SupervisorEvents;
  readonly limits: SupervisorLimits;
  /** Default: every pod may use the images on this host. */
  readonly imageAccess?: ImageAccess;
  /** Default: images come from registries only. */
  readonly otherNodes?: OtherNodes | undefined;
  /** Called when the state of an image has changed. */
  readonly imageChanged?: (reference: string) => void;
  /** Called when an image was added to this host or removed from it. */
  readonly imagesChanged?: () => void;
}

export interface SupervisorLimits {
  readonly startsAtOnce: number;
  readonly removalsAtOnce: number;
  readonly restart: RestartLimits;
  readonly image: BackOff;
  readonly fault: BackOff;
  readonly repairIntervalMs: number;
  /** The longest time for running steps after the agent was ordered to stop. */
  readonly closeMs: number;
}

export interface SupervisorEvents extends PodEvents {
  /** Called when a pod that is no longer assigned is removed completely. */
  forgotten(podUid: string): void;
  /** Called with the error when a part of the host stops responding, and with undefined when it responds again. */
  impaired(part: HostPart, error: unknown): void;
}

export type HostPart = "runtime" | "network" | "volumes" | "devices" | "events";

/** A pod as recorded in the journal. */
export interface RecordedPod {
  readonly uid: string;
  /** Undefined if the pod is no longer assigned but may not be removed completely. */
  readonly pod?: Pod;
  readonly memory?: PodMemory;
  /**
   * Whether the record of an assigned pod can't be read. The pod stays untouched until the coordinator sends it again.
   */
  readonly damaged?: boolean;
}
