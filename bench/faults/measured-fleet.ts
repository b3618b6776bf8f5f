import type { Lab } from "../../hack/lab-hosts/lab.ts";

/** Three hosts that run containers and one that decides, all booted, with REPLICAS equal containers. */
export interface MeasuredFleet {
  readonly lab: Lab;
  /** The namespace of its containers in each host's containerd. */
  readonly namespace: string;
  /** The unit of the daemon that starts containers. */
  readonly unit: string;
  /** Reports whether all hosts accept containers, according to the deciding host. */
  isReady(): Promise<boolean>;
}

export const REPLICAS = 6;
export const HOSTS = 3;
/** The command of a container. It ends at once on SIGTERM. */
export const COMMAND = ["sh", "-c", 'trap "exit" TERM; while :; do sleep 1000 & wait $!; done'];
