import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { instancePaths } from "../instance/instance.ts";
import { showProgress } from "../instance/progress.ts";
import { takeDown } from "../instance/take-down.ts";
import { stopContainerd } from "./containerd.ts";
import { removeEmptyPlaces } from "./containerd-tasks.ts";
import { endProxies } from "./gateway-remains.ts";
import { unmountBelow } from "./mounts.ts";
import { removeNetworkRemains } from "./network-remains.ts";
import { endProcess, identify, isAlive, type ProcessIdentity } from "./process-identity.ts";
import { SetupError } from "./setup-error.ts";

/**
 * The directory of test hosts, with a marker `<name>.json` and a directory `<name>` for each. It is not in /tmp, which
 * may be a small memory disk. `hack/test` mounts a large one here if there is memory for it.
 */
export const TEST_HOSTS = "/var/tmp/forage-test";

// The default directory of an agent's files that are not needed after a reboot.
const AGENT_RUN_DIRS = "/run/forage";

const SILENT = showProgress(
  () => {},
  false,
  () => 0,
);

/** Marks the host as a test's, before anything of it exists. */
export function claimTestHost(name: string): void {
  if (process.getuid?.() !== 0) {
    throw new SetupError(
      "NOT_ROOT",
      "tests on real containers need root",
      "sudo hack/test, or hack/test --unit for the others",
    );
  }
  mkdirSync(TEST_HOSTS, { recursive: true });
  writeFileSync(markerPath(name), JSON.stringify(identify(process.pid)));
}

/** Records a process that must not outlive the host. */
export function rememberProcess(name: string, identity: ProcessIdentity): void {
  appendFileSync(processesPath(name), `${JSON.stringify(identity)}\n`);
}

/** Removes everything of the host, whichever process made it. Idempotent. */
export async function removeTestHost(name: string): Promise<void> {
  const dir = join(TEST_HOSTS, name);
  await Promise.all(readProcesses(name).map((identity) => endProcess(identity, { graceMs: 2_000 })));
  for (const entry of existsSync(dir) ? readdirSync(dir) : []) {
    if (existsSync(instancePaths(join(dir, entry)).record)) await takeDown(join(dir, entry), SILENT);
  }
  for (const place of [dir, join(AGENT_RUN_DIRS, `agent-${name}`)]) await endProxies(place);
  await stopContainerd(join(dir, "c"));
  await removeNetworkRemains(name);
  await unmountBelow(dir);
  removeEmptyPlaces(`forage-${name}`);
  rmSync(join(AGENT_RUN_DIRS, `agent-${name}`), { recursive: true, force: true });
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  rmSync(markerPath(name), { force: true });
}

/** Removes the hosts of test processes that died before they could do it themselves. */
export async function removeStaleTestHosts(): Promise<void> {
  if (!existsSync(TEST_HOSTS)) return;
  for (const file of readdirSync(TEST_HOSTS)) {
    const name = /^(t[a-z0-9]{7})\.json$/.exec(file)?.[1];
    if (name && isStale(name) && claim(name)) await removeTestHost(name);
  }
}

function isStale(name: string): boolean {
  try {
    return !isAlive(JSON.parse(readFileSync(markerPath(name), "utf8")) as ProcessIdentity);
  } catch {
    // Its owner is writing it, or another process has removed it.
    return false;
  }
}

// If several processes see the same stale marker, the rename succeeds in only one of them.
function claim(name: string): boolean {
  const taken = `${markerPath(name)}.${process.pid}`;
  try {
    renameSync(markerPath(name), taken);
  } catch {
    return false;
  }
  writeFileSync(taken, JSON.stringify(identify(process.pid)));
  renameSync(taken, markerPath(name));
  return true;
}

function readProcesses(name: string): ProcessIdentity[] {
  if (!existsSync(processesPath(name))) return [];
  const lines = readFileSync(processesPath(name), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as ProcessIdentity);
}

function markerPath(name: string): string {
  return join(TEST_HOSTS, `${name}.json`);
}

function processesPath(name: string): string {
  return join(TEST_HOSTS, name, "processes");
}
