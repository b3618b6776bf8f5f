import { join } from "node:path";
import { type CommandLine, ConfigError } from "./config.ts";
import { helpText, isTask } from "./help-text.ts";
import { openLevelStore, restoreLevelStore, salvageLevelStore } from "./store/index.ts";
import type { Clock } from "./time/clock.ts";

/** A task on a store while no coordinator runs on it. */
export type MaintenanceTask =
  | { readonly name: "backup"; readonly file: string }
  | { readonly name: "restore"; readonly file: string; readonly epoch?: number }
  | { readonly name: "salvage" }
  | { readonly name: "verify" };

/** Assignment revisions carry the epoch in 23 bits, see `link/outbox.ts`. */
const maxEpoch = 2 ** 23 - 1;

/** Reads the words after the program's name; undefined: serve. Throws ConfigError for any other word. */
export function maintenanceTask(
  words: readonly string[],
  { epoch, newStore }: Pick<CommandLine, "epoch" | "newStore">,
): MaintenanceTask | undefined {
  const [name, file, ...rest] = words;
  if (epoch !== undefined && name !== "restore") throw new ConfigError("--epoch goes with restore");
  if (name === undefined) return undefined;
  if (!isTask(name)) throw new ConfigError(`there is no task "${name}"\n${helpText(undefined)}`);
  if (newStore) throw new ConfigError("--new-store goes with a start of the coordinator, not with a task");
  const needsFile = name === "backup" || name === "restore";
  if (rest.length > 0 || (file !== undefined) !== needsFile) {
    const what = needsFile ? "takes one file" : "takes no file";
    throw new ConfigError(`${name} ${what}\n${helpText(name)}`);
  }
  switch (name) {
    case "backup":
      return { name, file: file ?? "" };
    case "restore":
      return { name, file: file ?? "", ...(epoch !== undefined && { epoch: checkedEpoch(epoch) }) };
    case "salvage":
    case "verify":
      return { name };
  }
}

/** Does the task and returns what to say of it, one JSON object. */
export async function runMaintenance(task: MaintenanceTask, dataDir: string, clock: Clock): Promise<object> {
  const dir = join(dataDir, "store");
  if (task.name === "restore")
    return restoreLevelStore({
      dir,
      file: task.file,
      ...(task.epoch !== undefined && { epoch: task.epoch }),
    });
  if (task.name === "salvage") return salvageLevelStore({ dir });
  const store = await openLevelStore({ dir, clock, create: "refuse" });
  try {
    if (task.name === "backup") return await store.backup(task.file);
    await store.verify();
    return { id: store.id, epoch: store.epoch, revision: store.revision, verified: true };
  } finally {
    await store.close();
  }
}

function checkedEpoch(text: string): number {
  const epoch = /^\d{1,8}$/.test(text) ? Number(text) : Number.NaN;
  if (epoch >= 1 && epoch <= maxEpoch) return epoch;
  throw new ConfigError(`--epoch must be a whole number from 1 to ${maxEpoch}`);
}
