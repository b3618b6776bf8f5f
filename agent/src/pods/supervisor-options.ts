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
  /** Makes probes, and the calls of hooks. */
  readonly probe: RunProbe;
  readonly host: HostFacts;
  readonly events: SupervisorEvents;
  readonly limits: SupervisorLimits;
  /** Default: images that lie here are everybody's. */
  readonly imageAccess?: ImageAccess;
  /** Default: images come from registries only. */
  readonly otherNodes?: OtherNodes | undefined;
  /** Called when the state of an image has changed. */
  readonly imageChanged?: (reference: string) => void;
  /** Called when the host has images more or less than before. */
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
  /** A part of the host doesn't answer; undefined: it does again. */
  impaired(part: HostPart, error: unknown): void;
}

export type HostPart = "runtime" | "network" | "volumes" | "devices" | "events";

/** A pod as the journal has it. */
export interface RecordedPod {
  readonly uid: string;
  /** Undefined: no longer assigned, but it may have left something behind. */
  readonly pod?: Pod;
  readonly memory?: PodMemory;
  /** The pod is assigned, but its record can't be read. Nothing of it is touched until the coordinator sends it again. */
  readonly damaged?: boolean;
}
