import { type CommandLine, ConfigError } from "./config.ts";
import { giveStoreToOwner } from "./give-to-owner.ts";
import { helpText, isStoreTask } from "./help-text.ts";
import { AS_TASK, type Engine, migrate } from "./migrate.ts";
import { connectStore, levelDir, type StorePlace } from "./open-cluster-store.ts";
import type { ReplaceTask } from "./replace-store/run-replace.ts";
import {
  type DurableStore,
  openEtcdStore,
  openLevelStore,
  type RestoreResult,
  restoreEtcdStore,
  restoreLevelStore,
  type SalvageReport,
  salvageLevelStore,
} from "./store/index.ts";
import type { Clock } from "./time/clock.ts";

/** A task on a store. */
export type MaintenanceTask =
  | { readonly name: "backup"; readonly file: string }
  | { readonly name: "restore"; readonly file: string; readonly epoch?: number }
  | ({ readonly name: "replace" } & ReplaceTask)
  | { readonly name: "migrate"; readonly to: Engine }
  | { readonly name: "salvage" }
  | { readonly name: "verify" };

/** A task that runs while no coordinator runs. A replacement stops the coordinator itself. */
type StoppedTask = Exclude<MaintenanceTask, { readonly name: "replace" }>;

/**
 * The largest epoch. Revisions of assignments contain the epoch in 23 bits, see `link/outbox.ts`.
 */
const MAX_EPOCH = 2 ** 23 - 1;

type TaskFlags = Pick<CommandLine, "epoch" | "newStore" | "replace" | "yes" | "unit">;

/**
 * Parses the words after the program's name; undefined means to serve. Throws ConfigError for
 * unknown words.
 */
export function maintenanceTask(
  words: readonly string[],
  { epoch, newStore, replace, yes, unit }: TaskFlags,
): MaintenanceTask | undefined {
  const [name, file, ...rest] = words;
  if (replace && name !== "restore") throw new ConfigError("--replace is only for restore");
  if (!replace && (yes || unit !== undefined))
    throw new ConfigError("--yes and --unit are only for restore --replace");
  if (epoch !== undefined && name !== "restore") throw new ConfigError("--epoch is only for restore");
  if (name === undefined) return undefined;
  if (!isStoreTask(name)) throw new ConfigError(`there is no task "${name}"\n${helpText(undefined)}`);
  if (newStore) throw new ConfigError("--new-store is for starting the coordinator, not for a task");
  if (name === "migrate") return { name, to: engineOf(file, rest) };
  const needsFile = name === "backup" || name === "restore";
  if (rest.length > 0 || (file !== undefined) !== needsFile) {
    const what = needsFile ? "needs exactly one file" : "accepts no file";
    throw new ConfigError(`${name} ${what}\n${helpText(name)}`);
  }
  switch (name) {
    case "backup":
      return { name, file: file ?? "" };
    case "restore": {
      const backup = { file: file ?? "", ...(epoch !== undefined && { epoch: checkedEpoch(epoch) }) };
      return replace ? { name: "replace", ...backup, yes, unit } : { name, ...backup };
    }
    case "salvage":
    case "verify":
      return { name };
  }
}

/**
 * Executes the task, and returns its result as one JSON object. Operators run it as root, and the
 * store still belongs to the service's user.
 */
export async function runMaintenance(task: StoppedTask, place: StorePlace, clock: Clock): Promise<object> {
  try {
    return await execute(task, place, clock);
  } finally {
    await giveStoreToOwner(place.dataDir);
  }
}

async function execute(task: StoppedTask, place: StorePlace, clock: Clock): Promise<object> {
  if (task.name === "migrate") return migrate(task.to, place, clock);
  if (task.name === "restore") return restore(task, place, clock);
  if (task.name === "salvage") return salvage(place);
  const store = await open(place, clock);
  try {
    if (task.name === "backup") return await store.backup(task.file);
    await store.verify();
    return { id: store.id, epoch: store.epoch, revision: store.revision, verified: true };
  } finally {
    await store.close();
  }
}

async function open(place: StorePlace, clock: Clock): Promise<DurableStore> {
  const { etcd } = place.store;
  if (etcd === undefined) return openLevelStore({ dir: levelDir(place), clock, create: "refuse" });
  return openEtcdStore({ ...(await connectStore(place, etcd, clock)), ...AS_TASK });
}

async function restore(
  { file, epoch }: { readonly file: string; readonly epoch?: number },
  place: StorePlace,
  clock: Clock,
): Promise<RestoreResult> {
  const backup = { file, ...(epoch !== undefined && { epoch }) };
  const { etcd } = place.store;
  if (etcd === undefined) return restoreLevelStore({ dir: levelDir(place), ...backup });
  return restoreEtcdStore({ ...(await connectStore(place, etcd, clock)), ...AS_TASK }, backup);
}

function salvage(place: StorePlace): Promise<SalvageReport> {
  if (place.store.etcd === undefined) return salvageLevelStore({ dir: levelDir(place) });
  throw new ConfigError(
    "salvage: the store is in etcd, and salvage repairs files on the disk: restore a backup under another prefix",
  );
}

function engineOf(word: string | undefined, rest: readonly string[]): Engine {
  if (rest.length === 0 && (word === "etcd" || word === "disk")) return word;
  throw new ConfigError(`migrate needs "etcd" or "disk"\n${helpText("migrate")}`);
}

function checkedEpoch(text: string): number {
  const epoch = /^\d{1,8}$/.test(text) ? Number(text) : Number.NaN;
  if (epoch >= 1 && epoch <= MAX_EPOCH) return epoch;
  throw new ConfigError(`--epoch must be a whole number from 1 to ${MAX_EPOCH}`);
}
