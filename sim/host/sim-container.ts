import { CONTAINER_LABEL, POD_UID_LABEL } from "../../agent/src/pods/container-name.ts";
import type { ContainerSpec } from "../../agent/src/runtime/runtime.ts";

export interface SimContainer {
  readonly id: string;
  readonly spec: ContainerSpec;
  state: "created" | "running" | "exited";
  exitCode: number;
  readonly startedAtMs: number;
  finishedAtMs: number;
  /** The program that runs in it will end without being stopped. */
  endsByItself: boolean;
  /** The moment of the monotonic clock from which its probes succeed. */
  readonly warmAtMs: number;
  unready: boolean;
  broken: boolean;
  /** Whether its startup probe has succeeded once. */
  isUp: boolean;
  postStart: "none" | "tried" | "ran" | "done";
  postStarts: number;
  postStartEndedAtMs: number;
  preStopTried: boolean;
  /** Whether it may be ended although it is healthy, because the outcome of its hook is unknown. */
  excused: boolean;
}

export function podOf(container: { readonly spec: ContainerSpec }): string {
  return container.spec.labels[POD_UID_LABEL] ?? "";
}

export function nameOf(container: { readonly spec: ContainerSpec }): string {
  return container.spec.labels[CONTAINER_LABEL] ?? "";
}

/** Pod and container a simulated container is for. */
export function keyOf(container: { readonly spec: ContainerSpec }): string {
  return `${podOf(container)}/${nameOf(container)}`;
}
