import { join } from "node:path";
import type { Log } from "@forage/common/log";
import type { HostCapacity } from "./capacity/host-capacity.ts";
import { type OpenCapacityOptions, openCapacity } from "./capacity/open-capacity.ts";
import type { Config } from "./config.ts";
import type { DamageReports } from "./damage-reports.ts";
import { ImageRecords } from "./images/image-records.ts";
import { Journal } from "./journal/journal.ts";
import type { JournalFiles } from "./journal/journal-files.ts";
import type { JournalKey } from "./journal/journal-key.ts";
import type { JournalProblem } from "./journal/load-journal.ts";
import type { IdentityFiles } from "./link/node-identity.ts";
import { TokenFiles } from "./link/token-files.ts";
import { type RebootOutcome, resetAfterReboot } from "./reset-after-reboot.ts";

export interface OpenStateOptions extends OpenCapacityOptions {
  readonly config: Config;
  /** The disk of everything that the agent stores except its identity. */
  readonly files: JournalFiles;
  readonly journalKey: JournalKey;
  readonly identity: IdentityFiles;
  readonly log: Log;
  readonly damageReports: DamageReports;
}

/** The ways in which the agent replaces a record that it can't read. */
const JOURNAL_REMEDIES: Readonly<Record<JournalProblem["type"], string>> = {
  index: "the newest record of each pod is used until the coordinator sends all pods",
  pod: "its containers are left alone until the coordinator sends the pod",
  state: "it is read back from the kernel and containerd",
};

/** The agent's state on disk and on the host at its start. */
export interface OpenedState {
  readonly journal: Journal;
  readonly capacity: HostCapacity;
  readonly imageRecords: ImageRecords;
  readonly tokens: TokenFiles;
  /** Set if the states of pods after this boot could not be written. */
  readonly unwritten: RebootOutcome["unwritten"];
}

export async function openState(options: OpenStateOptions): Promise<OpenedState> {
  const { config, clock, files, log, damageReports } = options;
  const { dataDir } = config;
  await files.makeDirectory(dataDir);
  const journal = await Journal.open({
    dir: join(dataDir, "journal"),
    key: options.journalKey,
    signal: new AbortController().signal,
    files,
  });
  for (const { type, path, reason } of journal.problems)
    damageReports.note(path, reason, JOURNAL_REMEDIES[type]);
  const capacity = await openCapacity(options);
  const { rebooted, unwritten } = await resetAfterReboot({
    journal,
    files,
    bootId: capacity.bootId,
    bootIdFile: join(dataDir, "boot-id"),
    pendingFile: join(config.runDir, "states-of-last-boot"),
    nowMs: clock.nowMs(),
    noteDamage: damageReports.note,
  });
  if (rebooted) log.info({ event: "host-was-rebooted", bootId: capacity.bootId });
  if (unwritten !== undefined) log.error({ event: "states-not-written-after-reboot", err: unwritten.error });
  const imageRecords = await ImageRecords.open({
    dir: join(dataDir, "images"),
    files,
    nowMs: () => clock.nowMs(),
    onError: (err) => log.warn({ event: "images-not-remembered", err }),
  });
  const tokens = await TokenFiles.open({
    directory: join(config.runDir, "identity-tokens"),
    files,
    onError: (err) => log.warn({ event: "identity-token-not-kept", err }),
  });
  await options.identity.loadAuthority();
  return { journal, capacity, imageRecords, tokens, unwritten };
}
