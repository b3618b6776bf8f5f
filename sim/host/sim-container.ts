import { CONTAINER_LABEL, POD_UID_LABEL } from "../../agent/src/pods/container-name.ts";
import type { ContainerSpec } from "../../agent/src/runtime/runtime.ts";

export interface SimContainer {
  readonly id: string;
  readonly spec: ContainerSpec;
  state: "created" | "running" | "exited";
  exitCode: number;
  readonly startedAtMs: number;
  finishedAtMs: number;
  /** Whether its program will end without being stopped. */
  endsByItself: boolean;
  /** The monotonic time from which its probes succeed. */
  readonly warmAtMs: number;
  unready: boolean;
  broken: boolean;
  /** Whether its startup probe has succeeded once. */
  isUp: boolean;
  postStart: "none" | "tried" | "ran" | "done";
  postStarts: number;
  postStartEndedAtMs: number;
  preStopTried: boolean;
  /** Whether the container may be stopped although it is healthy, because the outcome of its hook is unknown. */
  excused: boolean;
}

export function podOf(container: { readonly spec: ContainerSpec }): string {
  return container.spec.labels[POD_UID_LABEL] ?? "";
}

export function nameOf(container: { readonly spec: ContainerSpec }): string {
  return container.spec.labels[CONTAINER_LABEL] ?? "";
}

/** Returns the pod and name of a simulated container as a key. */
export function keyOf(container: { readonly spec: ContainerSpec }): string {
  return `${podOf(container)}/${nameOf(container)}`;
}
