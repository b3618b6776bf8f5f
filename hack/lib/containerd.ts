import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { removeTasks } from "./containerd-tasks.ts";
import { endProcess, identify, isAlive, type ProcessIdentity } from "./process-identity.ts";
import { SetupError } from "./setup-error.ts";
import { waitFor } from "./wait-for.ts";

/** The directories of one containerd; it shares none. */
export interface ContainerdPlaces {
  /** Images and snapshots. */
  readonly rootDir: string;
  /** The directory of this boot only, where containers are mounted and run. */
  readonly stateDir: string;
  /** Path of the socket, at most 107 bytes long. */
  readonly address: string;
  readonly configPath: string;
}

export interface StartContainerdOptions {
  /** Holds everything of this containerd. Keep it short, for the socket's sake. */
  readonly dir: string;
  readonly signal?: AbortSignal;
}

/** A containerd of our own, beside any other on the host. */
export interface Containerd {
  /** Path of its socket, as in `nerdctl --address`. */
  readonly address: string;
  readonly identity: ProcessIdentity;
  /** Ends the daemon only: containers keep running, and a later start in the same directory adopts them. */
  stopDaemon(): Promise<void>;
  /** Ends the daemon, kills every container, and leaves no shim, mount, socket or cgroup. Content stays in `dir`. */
  stop(): Promise<void>;
}

// sun_path holds 108 bytes with the closing zero.
const MAX_SOCKET_PATH_BYTES = 107;
// Ready in under a second when idle; a loaded machine gets time.
const READY_LIMIT_MS = 60_000;
const STOP_GRACE_MS = 5_000;

/** Starts one in `dir`, or takes over the one that runs there already. */
export async function startContainerd(options: StartContainerdOptions): Promise<Containerd> {
  const places = containerdPlaces(options.dir, options.dir);
  const identity = readContainerdIdentity(options.dir) ?? launch(options.dir, places);
  await waitForContainerd(places.address, {
    ...(options.signal && { signal: options.signal }),
    explain: () => {
      if (isAlive(identity)) return `log: ${logPath(options.dir)}`;
      throw new SetupError(
        "NOT_READY",
        `containerd ended at once:\n${lastLog(options.dir)}`,
        "see the message above",
      );
    },
  }).catch(async (error: unknown) => {
    await endProcess(identity, { graceMs: 0 });
    throw error;
  });
  return {
    address: places.address,
    identity,
    stopDaemon: () => endProcess(identity, { graceMs: STOP_GRACE_MS }),
    stop: () => stopContainerd(options.dir),
  };
}

/** Stops what `startContainerd` started in `dir`, be it by this process or an earlier one. Idempotent. */
export async function stopContainerd(dir: string): Promise<void> {
  const identity = readContainerdIdentity(dir);
  if (identity) await endProcess(identity, { graceMs: STOP_GRACE_MS });
  await removeContainerdRemains(containerdPlaces(dir, dir));
  rmSync(identityPath(dir), { force: true });
}

/** Removes the remains of a containerd that no longer runs: containers, shims, mounts, sockets. Idempotent. */
export async function removeContainerdRemains(places: ContainerdPlaces): Promise<void> {
  await removeTasks(places);
  for (const path of [places.address, `${places.address}.ttrpc`]) rmSync(path, { force: true });
}

/** `runDir` may be a directory that doesn't outlive a reboot. */
export function containerdPlaces(dir: string, runDir: string): ContainerdPlaces {
  return {
    rootDir: join(dir, "root"),
    stateDir: join(runDir, "state"),
    address: join(runDir, "containerd.sock"),
    configPath: join(dir, "config.toml"),
  };
}

/** Writes the configuration of a containerd that is alone in its places, for `containerd --config`. */
export function writeContainerdConfig(places: ContainerdPlaces): void {
  if (Buffer.byteLength(places.address) > MAX_SOCKET_PATH_BYTES) {
    throw new SetupError(
      "BAD_USAGE",
      `the path ${places.address} is too long for a socket`,
      "choose a shorter directory",
    );
  }
  for (const path of [places.address, places.configPath])
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(places.configPath, configuration(places));
}

export function waitForContainerd(
  address: string,
  options: { readonly signal?: AbortSignal; readonly explain?: () => string },
): Promise<unknown> {
  return waitFor(() => answers(address), { what: "containerd answers", limitMs: READY_LIMIT_MS, ...options });
}

/** Undefined when no containerd of this directory lives. */
function readContainerdIdentity(dir: string): ProcessIdentity | undefined {
  try {
    const identity = JSON.parse(readFileSync(identityPath(dir), "utf8")) as ProcessIdentity;
    return isAlive(identity) ? identity : undefined;
  } catch {
    return undefined;
  }
}

function launch(dir: string, places: ContainerdPlaces): ProcessIdentity {
  writeContainerdConfig(places);
  const log = openSync(logPath(dir), "w");
  const child = spawn("containerd", ["--config", places.configPath], { stdio: ["ignore", log, log] });
  closeSync(log);
  child.on("error", () => {});
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (!identity) {
    throw new SetupError("MISSING_TOOL", "containerd can't be started", "apt-get install containerd runc");
  }
  writeFileSync(identityPath(dir), JSON.stringify(identity));
  return identity;
}

// The CRI plugin, NRI and /opt are for machines that have only one containerd; the restart monitor would fight ours.
function configuration({ rootDir, stateDir, address }: ContainerdPlaces): string {
  return `version = 2
root = ${JSON.stringify(rootDir)}
state = ${JSON.stringify(stateDir)}
disabled_plugins = [
  "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
  "io.containerd.internal.v1.opt", "io.containerd.internal.v1.restart", "io.containerd.nri.v1.nri",
  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = ${JSON.stringify(address)}
[debug]
  level = "warn"
`;
}

function answers(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address);
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}

function identityPath(dir: string): string {
  return join(dir, "containerd.pid.json");
}

function logPath(dir: string): string {
  return join(dir, "containerd.log");
}

function lastLog(dir: string): string {
  return readFileSync(logPath(dir), "utf8").trimEnd().split("\n").slice(-10).join("\n");
}
