/** The tasks on a store while no coordinator uses it. */
export type StoreTaskName = "backup" | "restore" | "verify" | "migrate" | "salvage";
type TaskName = StoreTaskName | "join";

const SETTINGS = `Settings come from flags, then the environment, then the file.
  --config FILE            FORAGE_COORDINATOR_CONFIG   the configuration file, /etc/forage/coordinator.yaml
                                                       on an installed host
  --data-dir DIR           FORAGE_DATA_DIR             the coordinator's data directory
  --log-level LEVEL        FORAGE_LOG_LEVEL            trace, debug, info, warn or error`;

const SERVE = `usage: forage-coordinator --config FILE [flags]
       forage-coordinator backup FILE | restore FILE | verify | migrate ENGINE | salvage  --config FILE
       forage-coordinator join HOST:PORT --config FILE

Runs the coordinator or, while it is stopped, maintains its store or gets the keys of a cluster. \`forage-coordinator TASK --help\` explains a task.

${SETTINGS}
  --grpc HOST:PORT         FORAGE_GRPC                 all gRPC services, over TLS
  --http HOST:PORT         FORAGE_HTTP                 health, metrics and the JSON API
  --destination HOST:PORT  FORAGE_DESTINATION          Destination in plain text on a loopback address, or "off"
  --new-store              starts with an empty store although the cluster's authority exists; every host has to
                           join again. Only for a cluster whose store is lost and has no backup
  -h, --help               prints this text`;

const TASKS: Readonly<Record<TaskName, string>> = {
  backup: `usage: forage-coordinator backup FILE --config FILE

Writes the store's records to a new file, with checksums. The file is there complete or not at all. The
coordinator must be stopped. Keep DATA_DIR/authority and DATA_DIR/keys as well: they are not in the backup.

${SETTINGS}`,
  restore: `usage: forage-coordinator restore FILE [--epoch N] --config FILE
       forage-coordinator restore FILE --replace [--yes] [--unit UNIT] [--epoch N] --config FILE

Makes a store from a backup, in DATA_DIR/store or in etcd. There must be none in that place. The coordinator must be stopped. A
restore that was cut off is started again with the same command.

With --replace it takes the place of the store in DATA_DIR, also while the coordinator runs. The backup is checked, the
coordinator is stopped by systemd and started with the restored store, and the former store is kept as
DATA_DIR/store.replaced-TIME. If the coordinator doesn't become ready, the former store is put back.

${SETTINGS}
  --replace                replaces the store that is there, and asks before
  --yes                    answers the question
  --unit UNIT              the unit to stop and start, forage-coordinator.service by default
  --epoch N                the new epoch, later than any that was in use; one after the backup's by default. A
                           backup that is restored a second time needs a higher one than the first time`,
  verify: `usage: forage-coordinator verify --config FILE

Reads everything in the store and reports whether it is as it was written. The coordinator must be stopped.

${SETTINGS}`,
  migrate: `usage: forage-coordinator migrate etcd | disk  --config FILE

Moves the store from the disk to etcd, or back, into a new epoch. The configuration has \`store.etcd\` in both cases;
remove it after a move to the disk. The store is verified first, and the copy is compared with it. The old store stays on
the disk under another name. The coordinator must be stopped. After an interruption, start the migration again.

${SETTINGS}`,
  salvage: `usage: forage-coordinator salvage --config FILE

Makes a damaged store one that opens, of every record that is provably as it was written, and names what is lost.
The damaged files are kept beside it. The coordinator must be stopped. Prefer restoring a backup.

${SETTINGS}`,
  join: `usage: forage-coordinator join HOST:PORT [--token-file FILE] --config FILE

Gets the keys of a cluster from one of its coordinators, so that the coordinator of this host can follow and lead. \`forage
coordinator add\` prints the whole line. The token is read from standard input; it can be used once. The configuration has the
same \`store.etcd\` as that of the other coordinators.

  --token-file FILE        reads the token from a file instead

${SETTINGS}`,
};

/** Returns the usage of the program, or of one of its tasks. */
export function helpText(task: string | undefined): string {
  return isTask(task) ? TASKS[task] : SERVE;
}

export function isStoreTask(word: string | undefined): word is StoreTaskName {
  return isTask(word) && word !== "join";
}

function isTask(word: string | undefined): word is TaskName {
  return word !== undefined && Object.hasOwn(TASKS, word);
}
