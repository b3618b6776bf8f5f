import type { Pod, PodContainer } from "./pod.ts";

/** Of a pod: `separate` keeps stdout and stderr of its containers apart, `combined` doesn't. */
export const LOG_STREAMS_ANNOTATION = "forage.dev/log-streams";

/** Whether a container's streams are to be kept apart: what the pod says, or else the host's default where that can be. */
export function separateStreams(
  { annotations }: Pick<Pod, "annotations">,
  { tty = false, ociRuntime }: Pick<PodContainer, "tty" | "ociRuntime">,
  byDefault: boolean,
): boolean {
  // A terminal is one stream by nature.
  if (tty) return false;
  switch (annotations?.[LOG_STREAMS_ANNOTATION]) {
    case "separate":
      return true;
    case undefined:
      // Only a program can be called through ours, not a shim.
      return byDefault && (ociRuntime === undefined || ociRuntime.startsWith("/"));
    default:
      return false;
  }
}
