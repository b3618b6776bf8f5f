import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { removeTasks } from "./containerd-tasks.ts";
import { endProcess, identify, isAlive, type ProcessIdentity } from "./process-identity.ts";
import { SetupError } from "./setup-error.ts";
import { waitFor } from "./wait-for.ts";

/** The directories of one containerd. It shares none of them. */
export interface ContainerdPlaces {
  /** Images and snapshots. */
  readonly rootDir: string;
  /** The directory for this boot only, in which containers are mounted and run. */
  readonly stateDir: string;
  /** Path of the socket, at most 107 bytes long. */
  readonly address: string;
  readonly configPath: string;
}

export interface StartContainerdOptions {
  /** The directory with all files of this containerd. Its path must be short because of the socket. */
  readonly dir: string;
  readonly signal?: AbortSignal;
}

/** A separate containerd, beside any other on the host. */
export interface Containerd {
  /** Path of its socket, as in `nerdctl --address`. */
  readonly address: string;
  readonly identity: ProcessIdentity;
  /** Ends the daemon only. Containers keep running, and a later start in the same directory adopts them. */
  stopDaemon(): Promise<void>;
  /**
   * Ends the daemon, kills every container, and removes shims, mounts, sockets and cgroups. Content remains in `dir`.
   */
  stop(): Promise<void>;
}

// sun_path has 108 bytes, including the final zero.
const MAX_SOCKET_PATH_BYTES = 107;
// A start takes less than a second on an idle machine. A loaded machine gets more time.
const READY_LIMIT_MS = 60_000;
const STOP_GRACE_MS = 5_000;

/** Starts a containerd in `dir`, or adopts the one that already runs there. */
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

/** Stops the containerd of `dir`, whichever process started it. Idempotent. */
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

/** Returns the paths of a containerd. `runDir` may be a directory that is deleted at a reboot. */
export function containerdPlaces(dir: string, runDir: string): ContainerdPlaces {
  return {
    rootDir: join(dir, "root"),
    stateDir: join(runDir, "state"),
    address: join(runDir, "containerd.sock"),
    configPath: join(dir, "config.toml"),
  };
}

/** Writes the configuration of a containerd that doesn't share its directories, for `containerd --config`. */
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

/** Returns `undefined` if no containerd of this directory is alive. */
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

// The CRI plugin, NRI and /opt are for machines with a single containerd. The restart monitor would restart our
// containers, too.
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
