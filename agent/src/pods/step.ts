import type { PullPolicy } from "./pod.ts";

/** One thing to do for a pod. Plain data: a step is logged as it is run. */
export type Step =
  /** Read the runtime's list again: what it showed is in doubt. */
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
  /** Take a running container over into the memory. */
  | { readonly kind: "adopt"; readonly container: string; readonly id: string }
  /** A container ended: remember how. Without id: it is gone altogether. */
  | { readonly kind: "recordExit"; readonly container: string; readonly id?: string }
  | { readonly kind: "startContainer"; readonly container: string; readonly attempt: number }
  | { readonly kind: "stopContainers"; readonly ids: readonly string[]; readonly graceMs: number }
  | { readonly kind: "removeContainers"; readonly ids: readonly string[] }
  /** Network, host ports and directories: everything but containers. */
  | { readonly kind: "cleanUp" };

export type Decision = { readonly kind: "step"; readonly step: Step } | Wait;

/** Nothing to do before `untilMs` (wall clock), or until something happens. */
export interface Wait {
  readonly kind: "wait";
  readonly untilMs?: number;
}

/** Steps with one key share their failures' back-off. */
export function stepKey(step: Step): string {
  return "container" in step ? `${step.kind}/${step.container}` : step.kind;
}
