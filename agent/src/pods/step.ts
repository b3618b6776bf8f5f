import type { PortRequest } from "../network/network.ts";
import type { PullPolicy, StopCause } from "./pod.ts";

/** One thing to do for a pod. Plain data: a step is logged as it is run. */
export type Step =
  /** Read the runtime's list again, because it may be out of date. */
  | { readonly kind: "look" }
  | {
      readonly kind: "fetchImage";
      readonly container: string;
      readonly image: string;
      readonly policy: PullPolicy;
    }
  | { readonly kind: "attachSandbox" }
  /** Remembered before they are used, so that they stay the pod's. */
  | { readonly kind: "allocatePorts" }
  | { readonly kind: "publishPorts" }
  /** Services lead to other ports of the running pod than before: publish these, and keep the host ports of the rest. */
  | { readonly kind: "updatePorts"; readonly ports: readonly PortRequest[] }
  /** Take a running container over into the memory. */
  | { readonly kind: "adopt"; readonly container: string; readonly id: string }
  /** A container ended: remember how. Without id: it is gone altogether. */
  | { readonly kind: "recordExit"; readonly container: string; readonly id?: string }
  | { readonly kind: "startContainer"; readonly container: string; readonly attempt: number }
  /** Runs the post_start hook once, beside other steps. */
  | { readonly kind: "postStart"; readonly container: string; readonly id: string }
  /** Runs the pre_stop hook and then sends the stop signal, beside other steps. `graceMs` bounds both. */
  | {
      readonly kind: "stopContainer";
      readonly container: string;
      readonly id: string;
      readonly graceMs: number;
      readonly cause?: StopCause;
    }
  | { readonly kind: "removeContainers"; readonly ids: readonly string[] }
  /** Write the memory of a pod that is over again, because the disk did not take it. */
  | { readonly kind: "saveOutcome" }
  /** Contents of its volumes changed: show them to what runs. */
  | { readonly kind: "updateVolumes" }
  /** Volumes, network, host ports and directories: everything but containers. */
  | { readonly kind: "cleanUp" };

export type Decision = { readonly kind: "step"; readonly step: Step } | Wait;

/** No step is due before `untilMs` (wall clock) or an event. */
export interface Wait {
  readonly kind: "wait";
  readonly untilMs?: number;
}

/** Steps that may take as long as a user's hook or grace period, and must not hold up the rest of the pod. */
export type BackgroundStep = Extract<Step, { readonly kind: "postStart" | "stopContainer" }>;

export function isBackgroundStep(step: Step): step is BackgroundStep {
  return step.kind === "postStart" || step.kind === "stopContainer";
}

/** Steps with one key share their failures' back-off. Errands are one run's of a container. */
export function stepKey(step: Step): string {
  if (isBackgroundStep(step)) return `${step.kind}/${step.id}`;
  return "container" in step ? `${step.kind}/${step.container}` : step.kind;
}
