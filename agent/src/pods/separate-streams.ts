import type { Pod, PodContainer } from "./pod.ts";

/** The annotation of a pod that controls its containers' stdout and stderr: `separate` or `combined`. */
export const LOG_STREAMS_ANNOTATION = "forage.dev/log-streams";

/**
 * Reports whether a container's streams are separate: by the pod's annotation, else by the host's default if the
 * runtime supports it.
 */
export function separateStreams(
  { annotations }: Pick<Pod, "annotations">,
  { tty = false, ociRuntime }: Pick<PodContainer, "tty" | "ociRuntime">,
  byDefault: boolean,
): boolean {
  // A terminal combines both streams.
  if (tty) return false;
  switch (annotations?.[LOG_STREAMS_ANNOTATION]) {
    case "separate":
      return true;
    case undefined:
      // The stream wrapper can call a runtime program, but not a containerd shim.
      return byDefault && (ociRuntime === undefined || ociRuntime.startsWith("/"));
    default:
      return false;
  }
}
