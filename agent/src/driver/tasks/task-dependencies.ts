import type { Clock } from "../../clock.ts";
import type { HelperWatch } from "../../runtime/nerdctl/helper-watch.ts";
import type { ContainerRuntime } from "../../runtime/runtime.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import type { DriverLog } from "./driver-log.ts";
import type { ExitWatch } from "./exit-watch.ts";
import type { HostFeatures } from "./host-features.ts";
import type { Processes } from "./processes.ts";
import type { TaskEvents } from "./task-events.ts";
import type { TaskImages } from "./task-images.ts";
import type { TaskNetworks } from "./task-networks.ts";

/** The dependencies that all parts of the task driver share. */
export interface TaskDependencies {
  /** Prefix of container names. */
  readonly instance: string;
  readonly options: DriverOptions;
  readonly runtime: ContainerRuntime;
  readonly networks: TaskNetworks;
  readonly images: TaskImages;
  readonly helpers: Pick<HelperWatch, "close">;
  readonly exits: ExitWatch;
  readonly events: TaskEvents;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: DriverLog;
  /**
   * The directory with one directory per task, for files that are mounted into its container. Discarded at a reboot.
   */
  readonly filesDir: string;
  /** The directory with one file for each start that is in progress. */
  readonly startsDir: string;
  /** MHz of one core, used if Nomad does not pass a value. */
  readonly coreMhz: number;
  readonly cores: number;
  readonly host: HostFeatures;
}
