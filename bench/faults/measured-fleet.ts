import type { Lab } from "../../hack/lab-hosts/lab.ts";

/** Three hosts that run containers and one that decides, all booted, with REPLICAS equal containers. */
export interface MeasuredFleet {
  readonly lab: Lab;
  /** The namespace of its containers in the containerd of each host. */
  readonly namespace: string;
  /** The unit of the daemon that starts containers. */
  readonly unit: string;
  /** Reports whether all hosts can take containers, by the account of the host that decides. */
  isReady(): Promise<boolean>;
}

export const REPLICAS = 6;
export const HOSTS = 3;
/** Ends at once when it is asked to. */
export const COMMAND = ["sh", "-c", 'trap "exit" TERM; while :; do sleep 1000 & wait $!; done'];
