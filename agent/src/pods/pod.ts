import type { ContainerHooks } from "../hooks/hook.ts";
import type { PodSandbox, PortMapping, PortRequest } from "../network/network.ts";
import type { ContainerProbes } from "../probes/probe-spec.ts";
import type { ContainerSecurity, ContainerUser, RuntimeContainer } from "../runtime/runtime.ts";
import type { PodVolumeSpec, VolumeMount } from "../volumes/volumes.ts";

export type PullPolicy = "Always" | "IfNotPresent" | "Never";
export type RestartPolicy = "Always" | "OnFailure" | "Never";

/** A pod as assigned to this host, parsed and with everything resolved. */
export interface Pod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Hex digest of the template; containers are adopted by it. */
  readonly specHash: string;
  readonly stopping: boolean;
  /** The time for which the logs of a stopping pod stay after its other parts were removed. Undefined: none. */
  readonly keepLogsMs?: number;
  readonly hostname: string;
  readonly graceMs: number;
  readonly restartPolicy: RestartPolicy;
  /** The pod's containers in start order. The main container is last, so that it stops first. */
  readonly containers: readonly PodContainer[];
  /** One after the other to completion, before the others; undefined: none. */
  readonly initContainers?: readonly PodContainer[];
  /** Undefined: none. */
  readonly volumes?: PodVolumeSpec;
  readonly objects?: PodObjects;
  /** Undefined: the agent's defaults. */
  readonly network?: PodNetworkSpec;
  /** Ports that services lead to and that no container declares; they may change while the pod runs. Undefined: none. */
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
  /** The entries before expansion and resolution: `resolve-container.ts` does both right before each start. */
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
  /** Counted resources other than cpu, memory and disk: how many of each. */
  readonly extended?: Readonly<Record<string, number>>;
  readonly ociRuntime?: string;
}

export type EnvEntry = { readonly name: string } & EnvSource;

export type EnvSource =
  | { readonly value: string }
  | { readonly secret: string; readonly key: string }
  | { readonly config: string; readonly key: string }
  /** `metadata.name`, `metadata.labels['x']`, `status.podIP`, … */
  | { readonly field: string }
  /** `limits.cpu`, `requests.memory`, … of the container itself. */
  | { readonly resourceField: string };

/** The objects that a pod refers to, from its assignment. */
export interface PodObjects {
  readonly secrets: readonly ObjectContent[];
  readonly configMaps: readonly ObjectContent[];
  /** `secret/NAME` or `config_map/NAME` to the version that env takes; others: the current one. */
  readonly envVersions: Readonly<Record<string, string>>;
  readonly registryCredentials: readonly RegistryCredential[];
  /** The identity token for the pod itself. It expires, so newer tokens replace it. */
  readonly identityToken?: string;
}

export interface ObjectContent {
  readonly name: string;
  readonly version: string;
  readonly current: boolean;
  readonly data: ReadonlyMap<string, Uint8Array>;
}

export interface RegistryCredential {
  /** Host and port as images name it; `docker.io` for images that name none. */
  readonly server: string;
  readonly username: string;
  readonly password: string;
}

export interface PodNetworkSpec {
  readonly hostNetwork: boolean;
  readonly dnsPolicy: "ClusterFirst" | "Default" | "None";
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  /** `ndots:2`, `rotate`: as in resolv.conf. */
  readonly options: readonly string[];
}

/** The agent's durable state of a pod, stored in the journal as JSON. */
export interface PodMemory {
  readonly sandbox?: PodSandbox;
  /** Undefined until allocated; kept over restarts. */
  readonly ports?: readonly PortMapping[];
  readonly containers: Readonly<Record<string, ContainerMemory>>;
  readonly startedAtMs?: number;
  readonly readyAtMs?: number;
  /**
   * The progress in the present sandbox. Init containers don't run again once others have started, and the main container waits
   * for sidecars only before its first start.
   */
  readonly begun?: "sidecars" | "main";
  /** The reason why the host ended the pod for good. */
  readonly failure?: { readonly reason: PodFailure; readonly message: string };
  /** The pod is removed from the host completely. */
  readonly removed: boolean;
}

export type PodFailure = "Evicted";

export interface ContainerMemory {
  /** The newest attempt made, from 1; 0: none yet. */
  readonly attempt: number;
  readonly phase: "new" | "started" | "ended";
  readonly containerId?: string;
  readonly startedAtMs?: number;
  readonly restarts: number;
  /** Ends in a row without a good run between them: the exponent of the back-off. */
  readonly crashes: number;
  /** Wall clock; not started again before. */
  readonly notBeforeMs: number;
  readonly lastTermination?: Termination;
  /** The terminations before the last, newest first; bounded. */
  readonly earlier?: readonly Termination[];
  /** The post-start hook of the present run. "begun" is stored before the hook runs, so that it never runs twice for one run. */
  readonly postStart?: "begun" | "done";
  /** The last verdicts of the present run's probes. */
  readonly health?: { readonly started: boolean; readonly ready: boolean };
  /** The present run is being ended; its grace period counts from then. */
  readonly stop?: StopMemory;
}

export interface StopMemory {
  readonly sinceMs: number;
  /** Undefined: through no fault of its own. */
  readonly cause?: StopCause;
}

/** The reason why a running container is ended, to be restarted by its policy. */
export interface StopCause {
  readonly reason: StopReason;
  readonly message: string;
}

export type StopReason = "LivenessProbeFailed" | "StartupProbeFailed" | "PostStartHookError";

export interface Termination {
  readonly exitCode: number;
  /** Number of the signal that ended it, else 0. */
  readonly signal: number;
  readonly reason:
    | "Completed"
    | "Error"
    | "OOMKilled"
    | "HostRebooted"
    | "Vanished"
    | "StartError"
    | StopReason;
  /** The last lines of the container, or the reason why it could not be started. Bounded. */
  readonly message: string;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
}

/** A container of the pod as the runtime shows it. */
export interface ObservedContainer {
  readonly id: string;
  readonly container: string;
  readonly attempt: number;
  readonly specHash: string;
  readonly state: RuntimeContainer["state"];
  /** The time since which the runtime has not known its state; monotonic clock. */
  readonly unknownSinceMs?: number;
  readonly startedAtMs?: number;
  readonly finishedAtMs?: number;
  readonly exitCode?: number;
  readonly oomKilled?: boolean;
}

/** The state of an image for one pod's container. */
export type ImageState =
  | { readonly kind: "unknown" }
  /** The image is being looked up or pulled. */
  | {
      readonly kind: "fetching";
      readonly pulling: boolean;
      readonly progress?: string;
      readonly percent?: number;
    }
  | { readonly kind: "present" }
  | {
      readonly kind: "failed";
      readonly reason: ImageFailure;
      readonly message: string;
      /** Wall clock, to be shown. */
      readonly retryAtMs: number;
      /** The time before which it is not tried again, by the monotonic clock. */
      readonly notBeforeMs: number;
    };

/** The last three don't get better by waiting alone. */
export type ImageFailure = "ImagePullBackOff" | "ErrImageNotFound" | "ErrImageDenied" | "ErrImageInvalid";

/** A step that failed and is not tried again before its time. */
export interface Fault {
  readonly failures: number;
  /** Monotonic clock. */
  readonly notBeforeMs: number;
  /** The same by the wall clock, to be shown. */
  readonly retryAtMs: number;
  readonly message: string;
  /** The missing precondition, unless the host itself has failed. */
  readonly reason?: StartBlock;
  /** Set if the pod was stopped because of too few devices: its devices are returned for others. */
  readonly forDevices?: true;
}

/** A container can't be made as things are: something it refers to is not there, a volume can't be had, or the disk is too full. */
export type StartBlock = "CreateContainerConfigError" | "FailedMount" | "DiskPressure";

export const EMPTY_MEMORY: PodMemory = { containers: {}, removed: false };

const NEW_CONTAINER: ContainerMemory = { attempt: 0, phase: "new", restarts: 0, crashes: 0, notBeforeMs: 0 };

export function memoryOf(memory: PodMemory, container: string): ContainerMemory {
  return memory.containers[container] ?? NEW_CONTAINER;
}

export function withContainer(memory: PodMemory, container: string, change: ContainerMemory): PodMemory {
  return { ...memory, containers: { ...memory.containers, [container]: change } };
}
