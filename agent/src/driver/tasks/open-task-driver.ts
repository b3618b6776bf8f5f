import type { Clock } from "../../clock.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import { DriverError } from "../driver-error.ts";
import type { TaskDriver } from "../driver-service.ts";

/** Writes one line of the plugin's log: a kebab-case event with its fields. */
export type DriverLog = (
  level: "debug" | "info" | "warn" | "error",
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

export interface TaskDriverContext {
  readonly options: DriverOptions;
  readonly clock: Clock;
  readonly log: DriverLog;
}

/** Opens the driver's tasks. Called once, when the first call about a task arrives. */
export async function openTaskDriver(_context: TaskDriverContext): Promise<TaskDriver> {
  throw new DriverError("UNIMPLEMENTED", "the driver runs no tasks yet");
}
