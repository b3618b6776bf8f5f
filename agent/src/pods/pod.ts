import type { ContainerHooks } from "../hooks/hook.ts";
import type { PodSandbox, PortMapping, PortRequest } from "../network/network.ts";
import type { ContainerProbes } from "../probes/probe-spec.ts";
import type { ContainerSecurity, ContainerUser, RuntimeContainer } from "../runtime/runtime.ts";
import type { PodVolumeSpec, VolumeMount } from "../volumes/volumes.ts";

export type PullPolicy = "Always" | "IfNotPresent" | "Never";
export type RestartPolicy = "Always" | "OnFailure" | "Never";

/** A pod as assigned to this host, parsed and with its references resolved. */
export interface Pod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Hex digest of the template, by which containers are adopted. */
  readonly specHash: string;
  readonly stopping: boolean;
  /** The time for which the logs of a stopping pod stay after everything else was removed. Undefined: none. */
  readonly keepLogsMs?: number;
  readonly hostname: string;
  readonly graceMs: number;
  readonly restartPolicy: RestartPolicy;
  /** The pod's containers in start order. The main container is last, so that it stops first. */
  readonly containers: readonly PodContainer[];
  /** Containers that run one after the other to completion before the others start. Undefined: none. */
  readonly initContainers?: readonly PodContainer[];
  /** The pod's volumes. Undefined: none. */
  readonly volumes?: PodVolumeSpec;
  readonly objects?: PodObjects;
  /** Settings of the pod's network. Undefined: the agent's defaults. */
  readonly network?: PodNetworkSpec;
  /** Ports that services use and no container declares; they may change while the pod runs. Undefined: none. */
  readonly servicePorts?: readonly PortRequest[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly serviceAccount?: string;
  /** The reason why this agent can't run the pod at all; `containers` is then empty. */
  readonly problem?: string;
}

export interface PodContainer {
  readonly name: string;
  readonly image: string;
  readonly pullPolicy: PullPolicy;
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** The entries before expansion and resolution, which `resolve-container.ts` does right before each start. */
  readonly env: readonly EnvEntry[];
  readonly workingDir?: string;
  readonly ports: readonly PortRequest[];
  readonly cpuLimitMilli?: number;
  readonly memoryLimitBytes?: number;
  readonly cpuShares?: number;
  /** The specified amounts by resource name (`requests.cpu`, `limits.ephemeral-storage`), for `resource_field_ref`. */
  readonly resources?: Readonly<Record<string, string>>;
  readonly rootLimitBytes?: number;
  readonly mounts?: readonly VolumeMount[];
  readonly probes?: ContainerProbes;
  readonly hooks?: ContainerHooks;
  readonly user?: ContainerUser;
  readonly security?: ContainerSecurity;
  readonly stdin?: boolean;
  readonly tty?: boolean;
  /** Quantities of extended resources by name. */
  readonly extended?: Readonly<Record<string, number>>;
  readonly ociRuntime?: string;
}

export type EnvEntry = { readonly name: string } & EnvSource;

export type EnvSource =
  | { readonly value: string }
  | { readonly secret: string; readonly key: string }
  | { readonly config: string; readonly key: string }
  /** A field path: `metadata.name`, `metadata.labels['x']`, `status.podIP`, … */
  | { readonly field: string }
  /** A resource of the container itself: `limits.cpu`, `requests.memory`, … */
  | { readonly resourceField: string };

/** The objects that a pod refers to, from its assignment. */
export interface PodObjects {
  readonly secrets: readonly ObjectContent[];
  readonly configMaps: readonly ObjectContent[];
  /**
   * Maps `secret/NAME` or `config_map/NAME` to the version used in env. Objects without an entry use their current
   * version.
   */
  readonly envVersions: Readonly<Record<string, string>>;
  readonly registryCredentials: readonly RegistryCredential[];
  /** The pod's own identity token. It expires and is replaced by newer tokens. */
  readonly identityToken?: string;
}

export interface ObjectContent {
  readonly name: string;
  readonly version: string;
  readonly current: boolean;
  readonly data: ReadonlyMap<string, Uint8Array>;
}

export interface RegistryCredential {
  /** Host and port as image names spell it; `docker.io` for images without a registry. */
  readonly server: string;
  readonly username: string;
  readonly password: string;
}

export interface PodNetworkSpec {
  readonly hostNetwork: boolean;
  readonly dnsPolicy: "ClusterFirst" | "Default" | "None";
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  /** Options of resolv.conf, such as `ndots:2` or `rotate`. */
  readonly options: readonly string[];
}

/** The agent's durable state of a pod, stored in the journal as JSON. */
export interface PodMemory {
  readonly sandbox?: PodSandbox;
  /** Undefined until the ports are allocated. Kept over restarts. */
  readonly ports?: readonly PortMapping[];
  readonly containers: Readonly<Record<string, ContainerMemory>>;
  readonly startedAtMs?: number;
  readonly readyAtMs?: number;
  /**
   * The progress in the current sandbox. Init containers don't run again once others have started, and the main
   * container waits for sidecars only before its first start.
   */
  readonly begun?: "sidecars" | "main";
  /** The reason for which the host has ended the pod for good. */
  readonly failure?: { readonly reason: PodFailure; readonly message: string };
  /** Whether the pod was removed from the host completely. */
  readonly removed: boolean;
}

export type PodFailure = "Evicted";

export interface ContainerMemory {
  /** The number of the newest attempt, from 1; 0 before the first. */
  readonly attempt: number;
  readonly phase: "new" | "started" | "ended";
  readonly containerId?: string;
  readonly startedAtMs?: number;
  readonly restarts: number;
  /** The number of ends since the last long run: the exponent of the back-off. */
  readonly crashes: number;
  /** The container is not started before this time, by the wall clock. */
  readonly notBeforeMs: number;
  readonly lastTermination?: Termination;
  /** The terminations before the last one, newest first; bounded. */
  readonly earlier?: readonly Termination[];
  /**
   * The state of the current run's post_start hook. "begun" is stored before the hook runs, so that it never runs twice
   * for one run.
   */
  readonly postStart?: "begun" | "done";
  /** The last probe verdicts of the current run. */
  readonly health?: { readonly started: boolean; readonly ready: boolean };
  /** Set while the current run is being stopped; contains the start of its grace period. */
  readonly stop?: StopMemory;
}

export interface StopMemory {
  readonly sinceMs: number;
  /** The reason for the stop. Undefined: not because of a failure of its own. */
  readonly cause?: StopCause;
}

/** The reason for stopping a running container, which its policy then restarts. */
export interface StopCause {
  readonly reason: StopReason;
  readonly message: string;
}

export type StopReason = "LivenessProbeFailed" | "StartupProbeFailed" | "PostStartHookError";

export interface Termination {
  readonly exitCode: number;
  /** The number of the signal that ended the container, else 0. */
  readonly signal: number;
  readonly reason:
    | "Completed"
    | "Error"
    | "OOMKilled"
    | "HostRebooted"
    | "Vanished"
    | "StartError"
    | StopReason;
  /** The last lines of the container's output, or the reason why it could not be started. Bounded. */
  readonly message: string;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
}

/** A container of the pod as observed in the runtime. */
export interface ObservedContainer {
  readonly id: string;
  readonly container: string;
  readonly attempt: number;
  readonly specHash: string;
  readonly state: RuntimeContainer["state"];
  /** The time since which the runtime has reported no state, by the monotonic clock. */
  readonly unknownSinceMs?: number;
  readonly startedAtMs?: number;
  readonly finishedAtMs?: number;
  readonly exitCode?: number;
  readonly oomKilled?: boolean;
}

/** The state of an image for one pod's container. */
export type ImageState =
  | { readonly type: "unknown" }
  /** The image is being looked up or pulled. */
  | {
      readonly type: "fetching";
      readonly pulling: boolean;
      readonly progress?: string;
      readonly percent?: number;
    }
  | { readonly type: "present" }
  | {
      readonly type: "failed";
      readonly reason: ImageFailure;
      readonly message: string;
      /** The wall-clock time of the next attempt, for display. */
      readonly retryAtMs: number;
      /** The monotonic time of the next attempt. */
      readonly notBeforeMs: number;
    };

/** The reason why an image is not available. The last three require a change by the user. */
export type ImageFailure = "ImagePullBackOff" | "ErrImageNotFound" | "ErrImageDenied" | "ErrImageInvalid";

/** A failed step and the time of its next try. */
export interface Fault {
  readonly failures: number;
  /** The monotonic time at which the step is retried. */
  readonly notBeforeMs: number;
  /** The same time by the wall clock, for display. */
  readonly retryAtMs: number;
  readonly message: string;
  /** The missing precondition. Undefined if the host itself has failed. */
  readonly reason?: StartBlock;
  /** Set if the pod was stopped because of too few devices; it has released its devices for other pods. */
  readonly forDevices?: true;
}

/**
 * The reason why a container can't be created at present: a referenced object is missing, a volume is unavailable, or
 * the disk is too full.
 */
export type StartBlock = "CreateContainerConfigError" | "FailedMount" | "DiskPressure";

export const EMPTY_MEMORY: PodMemory = { containers: {}, removed: false };

const NEW_CONTAINER: ContainerMemory = { attempt: 0, phase: "new", restarts: 0, crashes: 0, notBeforeMs: 0 };

export function memoryOf(memory: PodMemory, container: string): ContainerMemory {
  return memory.containers[container] ?? NEW_CONTAINER;
}

export function withContainer(memory: PodMemory, container: string, change: ContainerMemory): PodMemory {
  return { ...memory, containers: { ...memory.containers, [container]: change } };
}
