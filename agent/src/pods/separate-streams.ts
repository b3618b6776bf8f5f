import type { Pod, PodContainer } from "./pod.ts";

/** An annotation of a pod: `separate` separates its containers' stdout and stderr, `combined` doesn't. */
export const LOG_STREAMS_ANNOTATION = "forage.dev/log-streams";

/**
 * Reports whether a container's streams are separate: by the pod's annotation, or else by the host's default where it is
 * possible.
 */
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
