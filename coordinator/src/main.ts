import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Log } from "@forage/common/log";
import { RecentLines } from "@forage/common/recent-lines";
import { ServiceManager } from "@forage/common/service-manager";
import { LogDestination } from "@forage/identity/log-destination";
import { pino } from "pino";
import { openAuditLog } from "./audit/open-audit-log.ts";
import { ClusterAuthority } from "./authority/cluster-authority.ts";
import { adoptStored, followAuthority, leadAuthority } from "./authority/shared-authority.ts";
import { openBackups } from "./backups/open-backups.ts";
import { type CommandLine, ConfigError, readCommandLine, readHelp } from "./config.ts";
import { type Coordinator, type CoordinatorOptions, startCoordinator } from "./coordinator.ts";
import { failureText } from "./failure-text.ts";
import { type Follower, type FollowerOptions, startFollower } from "./follower/follower.ts";
import { authorityTimeProblem, ensureAdminToken } from "./identity.ts";
import { maintenanceTask, runMaintenance } from "./maintenance.ts";
import { readSigningKey } from "./notifications/signing-key.ts";
import { IdentityIssuer, loadSigningKeys } from "./objects/identity-issuer.ts";
import { loadKeys } from "./objects/key-file.ts";
import { hasSecrets, openFollowedVault, openVault, type ResealResult, reseal } from "./objects/open-vault.ts";
import { type OpenedStore, openOrFollow } from "./open-cluster-store.ts";
import { joinCluster } from "./peers/join-cluster.ts";
import { joinTask, readToken } from "./peers/join-task.ts";
import { readKeyFiles } from "./peers/key-files.ts";
import { ownPlace } from "./peers/own-place.ts";
import { hostAddresses } from "./reachable-at.ts";
import { runReplace } from "./replace-store/run-replace.ts";
import type { DurableStore } from "./store/index.ts";
import { systemClock } from "./time/clock.ts";
import { workspaceDefinitions } from "./workspaces/open-workspaces.ts";
import { openHostKey } from "./workspaces/ssh/open-host-key.ts";
import { WORKSPACE_KIND } from "./workspaces/workspace-kind.ts";

/**
 * The time limit of a stop. An aborted stop is better than one that hangs, and everything
 * acknowledged is on disk.
 */
const STOP_TIMEOUT_MS = 10_000;
/** The length of the kept log for support bundles: some hours of a quiet cluster. */
const RECENT_LOG_LENGTH = 4 * 1024 * 1024;
/**
 * The size of the memory pool for small buffers. A connection keeps a buffer of 3 bytes for its
 * lifetime, and with it the whole pool: Node's default of 64 KiB caused 6 kB for each agent.
 */
const BUFFER_POOL_BYTES = 8 * 1024;
const DASHBOARD_FILE = "dashboard.json";

/**
 * Returns the path of the file that the build puts beside the bundled program, or into the checkout
 * for a program that runs from source.
 */
function dashboardPath(ownDir: string): string {
  const beside = join(ownDir, DASHBOARD_FILE);
  return ownDir.endsWith(join("coordinator", "src")) ? join(ownDir, "../../dist", DASHBOARD_FILE) : beside;
}

async function main(): Promise<void> {
  Buffer.poolSize = BUFFER_POOL_BYTES;
  const argv = process.argv.slice(2);
  const help = readHelp(argv);
  if (help !== undefined) {
    process.stdout.write(`${help}\n`);
    return;
  }
  const commandLine = readCommandLine(argv, process.env);
  const { config } = commandLine;
  const join = joinTask(commandLine);
  if (join !== undefined) {
    reportWarnings((warning) => process.stderr.write(`${warning.message}\n`));
    const token = await readToken(join.tokenFile, process.stdin);
    mkdirSync(config.dataDir, { recursive: true, mode: 0o755 });
    const joinOptions = {
      config,
      token,
      name: hostname(),
      clock: systemClock,
      signal: new AbortController().signal,
    };
    process.stdout.write(`${JSON.stringify(await joinCluster({ ...joinOptions, address: join.address }))}\n`);
    return;
  }
  const task = maintenanceTask(commandLine.words, commandLine);
  if (task !== undefined) {
    const terminal = { input: process.stdin, output: process.stderr };
    const result =
      task.name === "replace"
        ? await runReplace(task, config, systemClock, terminal)
        : await runMaintenance(task, config, systemClock);
    process.stdout.write(`${JSON.stringify(result)}\n`);
    return;
  }
  await serve(commandLine);
}

async function serve({ config, newStore }: CommandLine): Promise<void> {
  const base = { program: "coordinator" };
  const recentLog = new RecentLines(RECENT_LOG_LENGTH);
  const log = pino({ level: config.logLevel, base }, LogDestination.keeping(recentLog));
  reportWarnings((err) => log.warn({ event: "process-warning", err }));
  const clock = systemClock;
  // An unusable key is reported now, and not at the first message.
  await Promise.all(config.notifications.map(({ secretFile }) => readSigningKey(secretFile)));
  // Other users read the authority's certificate in it; secrets are in private subdirectories.
  mkdirSync(config.dataDir, { recursive: true, mode: 0o755 });
  const manager = new ServiceManager({
    ...{ environment: process.env, pid: process.pid, clock },
    status: () => present.status(),
  });
  const present: Present = { status: () => "opening the store", end: async () => {} };
  const stopping = endOnSignal(log, manager, () => present.end());
  const onFatal = (err: unknown): void => {
    log.fatal({ event: "coordinator-failed", err });
    process.exit(1);
  };
  const runOptions = { config, clock, log, recentLog, manager, stopping, onFatal };
  for (let isFirst = true; !stopping.aborted; isFirst = false)
    await live({ ...runOptions, newStore: newStore && isFirst }, present);
}

/** The current run of the process, see `live`. */
interface Present {
  status: () => string;
  /** Ends the run in order. */
  end: () => Promise<void>;
}

interface LifeOptions extends Pick<CoordinatorOptions, "config" | "clock" | "log" | "recentLog" | "onFatal"> {
  readonly newStore: boolean;
  readonly manager: Pick<ServiceManager, "ready">;
  /** Aborts when the process stops. */
  readonly stopping: AbortSignal;
}

/**
 * Opens the store, and leads or follows until the process stops or the lead is lost. Then
 * everything is closed, because a leader's state in memory is outdated, and the next run opens the
 * store again.
 */
async function live(options: LifeOptions, present: Present): Promise<void> {
  const { config, newStore, clock, log, manager, stopping } = options;
  present.status = () => "opening the store";
  present.end = async () => {};
  const own = { config, hostAddresses: hostAddresses(networkInterfaces()) };
  const opened = await openOrFollow(config, newStore, {
    clock,
    addresses: ownPlace(own).addresses,
    log: (entry) => log.info(entry),
  });
  const { store } = opened;
  const lost = Promise.withResolvers<void>();
  const onFatal = onceLost(store, options, lost.resolve);
  const leadOptions = { ...options, ...own, ...(await openIdentity(options)), onFatal };
  let close = async (): Promise<void> => {};
  let closing: Promise<void> | undefined;
  present.end = () => {
    closing ??= close().then(() => store.close());
    return closing;
  };
  if (opened.type === "leads") {
    const starting = lead({ ...leadOptions, store });
    // From now on, a signal ends the run in order even while the ports are being opened.
    close = async () => (await starting).close();
    const coordinator = await starting;
    present.status = () => coordinator.status();
    manager.ready();
  } else {
    const { follower, stopAuthority } = await follow(opened, leadOptions);
    close = () => follower.close();
    present.status = () => follower.status();
    manager.ready();
    try {
      await opened.store.lead(
        (leader) => follower.observe(leader),
        () => follower.observe(undefined),
      );
      await stopAuthority();
      const coordinator = await lead({ ...leadOptions, store, follower });
      close = () => coordinator.close();
      present.status = () => coordinator.status();
    } catch (error) {
      // The store was closed while the coordinator waited for the lead.
      if (!stopping.aborted) throw error;
    }
  }
  await lost.promise;
  present.status = () => "stepping down: another coordinator leads";
  const cancel = clock.schedule(STOP_TIMEOUT_MS, () =>
    options.onFatal(new Error("stepping down took too long")),
  );
  await present.end();
  cancel();
}

/**
 * Returns a handler of errors after which the run can't continue. The loss of the lead ends the
 * run; other errors end the process.
 */
function onceLost(
  store: Pick<DurableStore, "health">,
  { log, onFatal }: LifeOptions,
  onLost: () => void,
): (error: unknown) => void {
  let isLost = false;
  return (err) => {
    // Components that are being closed may fail as well.
    if (isLost) return;
    const health = store.health();
    if (health.status !== "read-only" || health.reason !== "lead-lost") return onFatal(err);
    isLost = true;
    log.warn({ event: "lead-lost", err });
    onLost();
  };
}

async function openIdentity({ config, clock, log }: LifeOptions) {
  const authority = await ClusterAuthority.open({
    dataDir: config.dataDir,
    cluster: config.cluster,
    ca: { nowMs: clock.nowMs, randomBytes },
    onProblem: (path, err) => log.warn({ event: "authority-certificate-not-written", path, err }),
  });
  const problem = authorityTimeProblem(authority.certPem, clock.nowMs());
  if (problem !== undefined) log.error({ event: "authority-out-of-time", problem });
  return { authority, authorityRoll: authority, audit: await openAuditLog(config.dataDir, clock, log) };
}

async function follow(
  opened: Extract<OpenedStore, { readonly type: "follows" }>,
  options: Omit<
    FollowerOptions,
    "store" | "self" | "vault" | "issuer" | "further" | "foreignKinds" | "authority"
  > & {
    readonly authority: ClusterAuthority;
  },
): Promise<{ readonly follower: Follower; readonly stopAuthority: () => Promise<void> }> {
  const { config, clock } = options;
  const { store } = opened;
  const further = config.workspaces.enabled ? workspaceDefinitions : [];
  const keys = await loadKeys({ ...keyFiles(config), mayMake: false });
  const vault = await openFollowedVault(keys, store, clock);
  const issuer = await openIdentityIssuer(config, store, { mayMake: false });
  const shared = { store, epoch: store.epoch, vault, authority: options.authority };
  await adoptStored(shared);
  const settings = { vault, issuer, further, foreignKinds: [WORKSPACE_KIND] };
  const follower = await startFollower({ ...options, ...opened, ...settings });
  return {
    follower,
    stopAuthority: followAuthority({ ...shared, log: options.log, onFatal: options.onFatal }),
  };
}

/** Runs the coordinator as the leader, once no other coordinator leads. */
async function lead(
  options: Omit<CoordinatorOptions, "epoch" | "lineage" | "clusterId" | "vault" | "issuer"> & {
    readonly store: DurableStore;
    readonly authority: ClusterAuthority;
  },
): Promise<Coordinator> {
  const { config, store, authority, clock, log } = options;
  if (config.adminTokenFile !== undefined) await ensureAdminToken(config.adminTokenFile, store, clock);
  const keys = await loadKeys({ ...keyFiles(config), mayMake: !(await hasSecrets(store)) });
  const vault = await openVault(keys, store);
  reportReseal(await reseal(keys, store), log);
  const issuer = await openIdentityIssuer(config, store, { mayMake: true });
  if (config.store.etcd !== undefined) await leadAuthority({ store, epoch: store.epoch, vault, authority });
  return startCoordinator({
    ...options,
    epoch: store.epoch,
    lineage: store.lineage,
    clusterId: store.id,
    ...(config.store.etcd && { readKeyFiles: keyReader(config) }),
    ...{ vault, issuer },
    backups: await openBackups(config, { store, clock, log }),
    dashboardPath: dashboardPath(import.meta.dirname),
  });
}

/**
 * Returns a function that reads the keys for a coordinator that joins. They include the SSH host key,
 * which is generated if it is missing, so that coordinators have the same one when SSH is enabled later.
 */
function keyReader({ dataDir, workspaces }: CoordinatorOptions["config"]) {
  const hasOwnFile = workspaces.ssh?.hostKeyFile !== undefined;
  let generated: Promise<unknown> | undefined;
  return async () => {
    if (!hasOwnFile)
      generated ??= openHostKey({ dataDir }).catch((error: unknown) => {
        generated = undefined;
        throw error;
      });
    await generated;
    return readKeyFiles(dataDir);
  };
}

function reportReseal({ rewritten, unreadable, stopped }: ResealResult, log: Log): void {
  if (rewritten > 0) log.info({ event: "secrets-encrypted-again", records: rewritten });
  for (const { key, error } of unreadable) log.error({ event: "secret-unreadable", key, err: error });
  if (stopped !== undefined) log.error({ event: "secrets-not-encrypted-again", err: stopped });
}

/** Returns the paths of the keys for secrets. */
function keyFiles({ secretKeyFile, dataDir }: CoordinatorOptions["config"]) {
  return {
    path: secretKeyFile,
    credentialsDirectory: process.env.CREDENTIALS_DIRECTORY,
    defaultPath: join(dataDir, "keys", "secrets.keys"),
  };
}

async function openIdentityIssuer(
  { dataDir, identityIssuer }: CoordinatorOptions["config"],
  store: Pick<DurableStore, "id">,
  how: { readonly mayMake: boolean },
): Promise<IdentityIssuer> {
  const keys = await loadSigningKeys(join(dataDir, "keys", "identity.pem"), how);
  return new IdentityIssuer({ issuer: identityIssuer ?? store.id, keys });
}

/** Ends the process in order on a signal. Returns a signal that aborts at that moment. */
function endOnSignal(log: Log, manager: ServiceManager, end: () => Promise<void>): AbortSignal {
  const stopping = new AbortController();
  const stop = (signal: string): void => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    log.info({ event: "coordinator-stopping", signal });
    manager.stopping();
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS).unref();
    void end().then(() => process.exit(0));
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  return stopping.signal;
}

/**
 * Reports Node's own warnings, except for a useless one that every TLS connection to an address
 * without a name causes.
 */
function reportWarnings(report: (warning: Error) => void): void {
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    if (!("code" in warning && warning.code === "DEP0123")) report(warning);
  });
}

main().catch((error: unknown) => {
  process.stderr.write(`forage-coordinator: ${failureText(error, process.env.FORAGE_LOG_LEVEL)}\n`);
  process.exit(error instanceof ConfigError ? 2 : 1);
});
