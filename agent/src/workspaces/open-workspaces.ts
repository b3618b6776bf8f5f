import { constants } from "node:fs";
import { access, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@forage/common/log";
import type { Clock } from "../clock.ts";
import { ConfigError } from "../config.ts";
import type { NoteDamage } from "../damage-reports.ts";
import type { JournalKey } from "../journal/journal-key.ts";
import type { CoordinatorAddresses } from "../link/coordinator-addresses.ts";
import type { IdentityFiles } from "../link/node-identity.ts";
import type { PodStatus } from "../pods/decide/pod-status.ts";
import { ChildRunner } from "../volumes/run-child.ts";
import type { VolumeProvider } from "../volumes/volumes.ts";
import { HostContent } from "./host-content.ts";
import { EgressProxy } from "./initialize/egress-proxy.ts";
import type { SecretCache } from "./initialize/one-time-secrets.ts";
import { type RefuseAddress, refuseHostAddresses } from "./initialize/reachable.ts";
import { openWorkspaceClient } from "./open-workspace-client.ts";
import { SyncClient, type SyncClientOptions } from "./sync-client.ts";
import { WorkspaceLayout } from "./workspace-layout.ts";
import { WorkspaceRecords } from "./workspace-records.ts";
import { Workspaces } from "./workspaces.ts";

export interface OpenWorkspacesOptions {
  readonly dataDir: string;
  readonly coordinators: Pick<CoordinatorAddresses, "current">;
  readonly identity: Pick<IdentityFiles, "load">;
  readonly key: JournalKey;
  readonly noteDamage: NoteDamage;
  readonly clock: Clock;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
  /** The addresses that initializers must not reach. Default: this host and its cloud's metadata service. */
  readonly refuse?: RefuseAddress;
  /** Reports whether the host has a program. Default: looks it up in the system's directories. */
  readonly findProgram?: (program: string) => Promise<boolean>;
  readonly log: Pick<Log, "info" | "warn">;
}

/** The programs that creating the content of workspaces requires. */
const PROGRAMS = ["tar", "zstd", "git", "setpriv", "unshare", "mount", "nice", "sync", "du"];
const PROGRAM_DIRECTORIES = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** The pods of this host, once they are known. */
export interface HostPods {
  readonly ready: Promise<void>;
  pods(): readonly PodStatus[];
  retryStart(podUid: string): void;
}

export interface OpenedWorkspaces {
  readonly provider: VolumeProvider;
  start(host: HostPods): void;
  close(): Promise<void>;
}

/** Opens the node's part of workspaces and reads what is on disk. Work begins with `start`. */
export async function openWorkspaces(options: OpenWorkspacesOptions): Promise<OpenedWorkspaces> {
  const { dataDir, coordinators, identity, clock, random, log } = options;
  const directory = join(dataDir, "workspaces");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await requirePrograms(options.findProgram ?? isOnPath);
  const layout = new WorkspaceLayout(await realpath(directory));
  const records = new WorkspaceRecords({ layout, key: options.key, noteDamage: options.noteDamage });
  const connect = async () => {
    const own = await identity.load();
    if (own === undefined) throw new Error("this host has not joined a cluster");
    return openWorkspaceClient(coordinators.current, own);
  };
  const children = new ChildRunner();
  const refuse = options.refuse ?? refuseHostAddresses();
  const proxy = await EgressProxy.open(refuse);
  const secrets: SecretCache = {
    read: (id) => records.readSecrets(id),
    write: (id, kept) => records.saveSecrets(id, kept),
  };
  const git = { proxyUrl: proxy.url, refuse, secrets };
  const actions = new HostContent({ layout, records, children, connect, git, warn: log.warn.bind(log) });
  const workspaces = await Workspaces.open({ clock, random, records, actions, log });
  const sync = syncWorkspaces(workspaces, { clock, random, connect, log });
  const closing = new AbortController();
  let running: Promise<void> | undefined;
  return {
    provider: workspaces,
    start: (host) => {
      running = host.ready.then(async () => {
        if (closing.signal.aborted) return;
        workspaces.start({
          active: (podUid) => isActive(host.pods().find(({ uid }) => uid === podUid)),
          retryStart: (podUid) => host.retryStart(podUid),
        });
        await sync.run(closing.signal);
      });
    },
    close: async () => {
      closing.abort();
      await Promise.all([workspaces.close(), running]);
      await proxy.close();
    },
  };
}

/** Returns the client that receives the coordinator's orders for the workspaces, and sends reports when they change. */
export function syncWorkspaces(
  workspaces: Workspaces,
  options: Pick<SyncClientOptions, "clock" | "random" | "connect" | "log">,
): SyncClient {
  const sync = new SyncClient({
    ...options,
    ids: () => workspaces.ids,
    reportOf: (id) => workspaces.reportOf(id),
    apply: (response) => workspaces.apply(response),
  });
  workspaces.onChange((id) => sync.changed(id));
  return sync;
}

/** @throws ConfigError that names all missing programs. */
async function requirePrograms(isThere: (program: string) => Promise<boolean>): Promise<void> {
  const found = await Promise.all(PROGRAMS.map(async (name) => ({ name, isThere: await isThere(name) })));
  const missing = found.filter((it) => !it.isThere).map(({ name }) => name);
  if (missing.length === 0) return;
  throw new ConfigError(
    `workspaces.enabled: this host has no ${missing.join(", ")}; install the packages that contain them, or set workspaces.enabled to off`,
  );
}

async function isOnPath(program: string): Promise<boolean> {
  const found = PROGRAM_DIRECTORIES.map((directory) =>
    access(join(directory, program), constants.X_OK).then(
      () => true,
      () => false,
    ),
  );
  return (await Promise.all(found)).includes(true);
}

/** Reports whether the pod has a process that could still write. */
function isActive(status: PodStatus | undefined): boolean {
  if (status === undefined || status.phase === "REMOVED") return false;
  const isOver = status.phase === "SUCCEEDED" || status.phase === "FAILED";
  return !isOver || status.containers.some(({ state }) => state.type === "running");
}
