import type { FileHandle } from "node:fs/promises";
import type { Log } from "@forage/common/log";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { type CallContext, callerName } from "../rpc/caller.ts";
import { StoreError } from "../store/index.ts";
import type { BackupDirectory, ListedBackup } from "./backup-directory.ts";

export interface BackupHandlerOptions {
  /** The backups; undefined if the store is not on a local disk. */
  readonly backups: BackupDirectory | undefined;
  readonly log: Log;
}

/** The size of a chunk, which fits into a message of 4 MiB. */
const CHUNK_BYTES = 256 * 1024;
const MAX_DOWNLOADS = 4;

export interface BackupHandlers {
  createBackup(request: wire.CreateBackupRequest, context: CallContext): Promise<wire.CreateBackupResponse>;
  listBackups(): Promise<wire.ListBackupsResponse>;
  getBackup(request: wire.GetBackupRequest, context: CallContext): AsyncGenerator<wire.GetBackupResponse>;
}

/** Returns the RPCs that make, list and send backups. */
export function backupHandlers({ backups, log }: BackupHandlerOptions): BackupHandlers {
  let downloads = 0;
  const directory = (): BackupDirectory => {
    if (backups !== undefined) return backups;
    throw new CoordinatorError("FAILED_PRECONDITION", "this coordinator has no directory for backups");
  };
  return {
    createBackup: async (_, { caller }) => createBackup(directory(), log, callerName(caller)),
    listBackups: async () => ({ backups: (await directory().list()).map(backupView) }),
    getBackup: async function* ({ name }, { signal }) {
      if (downloads >= MAX_DOWNLOADS)
        throw new CoordinatorError("RESOURCE_EXHAUSTED", "too many backups are being sent: try again later");
      downloads += 1;
      try {
        yield* sendBackup(directory(), name, signal);
      } finally {
        downloads -= 1;
      }
    },
  };
}

async function createBackup(
  directory: BackupDirectory,
  log: Log,
  by: string,
): Promise<wire.CreateBackupResponse> {
  if (directory.isBusy)
    throw new CoordinatorError("ABORTED", "a backup is being made: try again when it is complete");
  try {
    const made = await directory.make("on-demand");
    const { name, info } = made;
    const { revision, records, sha256 } = info;
    log.info({ event: "backup-made", name, revision, records, sha256, by });
    return { backup: backupView(made), revision: BigInt(revision), records: BigInt(records) };
  } catch (err) {
    log.error({ event: "backup-failed", directory: directory.path, err });
    // The message of this error states what to do. Other errors of the store have their own
    // messages.
    if (err instanceof StoreError && err.code === "NO_SPACE")
      throw new CoordinatorError("RESOURCE_EXHAUSTED", err.message, { cause: err });
    throw err;
  }
}

async function* sendBackup(
  directory: BackupDirectory,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<wire.GetBackupResponse> {
  const found = await directory.read(name);
  if (found === undefined)
    throw new CoordinatorError(
      "NOT_FOUND",
      `there is no backup "${name}": \`forage backup ls\` lists the backups`,
    );
  try {
    yield { frame: { $case: "backup", value: backupView(found.backup) } };
    for await (const value of chunksOf(found.file)) {
      if (signal.aborted) return;
      yield { frame: { $case: "data", value } };
    }
  } finally {
    await found.file.close();
  }
}

async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    // The previous buffer may still wait to be sent.
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function backupView({ name, series, madeMs, sizeBytes }: ListedBackup): wire.Backup {
  return {
    name,
    madeAt: toTimestamp(madeMs),
    sizeBytes: BigInt(sizeBytes),
    scheduled: series === "scheduled",
  };
}
