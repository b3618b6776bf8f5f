import type { PortRequest } from "../network/network.ts";
import type { PullPolicy, StopCause } from "./pod.ts";

/** One action for a pod. Plain data, so that each step can be logged when it runs. */
export type Step =
  /** Lists the runtime's containers again because the known list may be outdated. */
  | { readonly type: "inspect" }
  | {
      readonly type: "fetchImage";
      readonly container: string;
      readonly image: string;
      readonly policy: PullPolicy;
    }
  | { readonly type: "attachSandbox" }
  /** Allocates ports and records them before use, so that the pod keeps them. */
  | { readonly type: "allocatePorts" }
  | { readonly type: "publishPorts" }
  /**
   * Publishes other ports because the services of the running pod have changed. Ports in both sets keep their host
   * ports.
   */
  | { readonly type: "updatePorts"; readonly ports: readonly PortRequest[] }
  /** Records a running container that the memory does not contain. */
  | { readonly type: "adopt"; readonly container: string; readonly id: string }
  /** Records how a container ended. Without `id`, the container no longer exists. */
  | { readonly type: "recordExit"; readonly container: string; readonly id?: string }
  | { readonly type: "startContainer"; readonly container: string; readonly attempt: number }
  /** Runs the post_start hook once, in the background. */
  | { readonly type: "postStart"; readonly container: string; readonly id: string }
  /** Runs the pre_stop hook and then sends the stop signal, in the background. `graceMs` bounds both. */
  | {
      readonly type: "stopContainer";
      readonly container: string;
      readonly id: string;
      readonly graceMs: number;
      readonly cause?: StopCause;
    }
  | { readonly type: "removeContainers"; readonly ids: readonly string[] }
  /** Writes the memory of a finished pod again because the disk rejected the first write. */
  | { readonly type: "saveOutcome" }
  /** Updates the content of the volumes for running containers. */
  | { readonly type: "updateVolumes" }
  /** Removes volumes, network, host ports and directories: everything except containers. */
  | { readonly type: "cleanUp" };

export type Decision = { readonly type: "step"; readonly step: Step } | Wait;

/** No step is due before `untilMs` (monotonic clock) unless an event arrives. */
export interface Wait {
  readonly type: "wait";
  readonly untilMs?: number;
}

/** Steps that may take as long as a user's hook or grace period and must not block the pod's other steps. */
export type BackgroundStep = Extract<Step, { readonly type: "postStart" | "stopContainer" }>;

export function isBackgroundStep(step: Step): step is BackgroundStep {
  return step.type === "postStart" || step.type === "stopContainer";
}

/**
 * Returns the key of a step. Steps with the same key share their back-off. The key of a background step contains the id
 * of its container's run.
 */
export function stepKey(step: Step): string {
  if (isBackgroundStep(step)) return `${step.type}/${step.id}`;
  return "container" in step ? `${step.type}/${step.container}` : step.type;
}
