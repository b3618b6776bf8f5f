import { mkdir, readdir, readFile, readlink, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type DirectoryLock, lockDirectory } from "@forage/identity/directory-lock";
import { type Clock, pause } from "../clock.ts";
import { conflictOf, describeUsedInstance, type RunningAgent } from "./conflict.ts";

export interface HostClaimOptions {
  /** The directory of all agents' `NAMESPACE/INSTANCE/agent.json`. Accessible to root only. */
  readonly directory: string;
  /** The name of the network namespace in which the agent runs. */
  readonly namespace: string;
  readonly agent: RunningAgent;
  readonly clock: Clock;
}

/** The error of two conflicting agents on one host. The message names the other agent. */
export class HostConflict extends Error {
  override readonly name = "HostConflict";
}

const RECORD = "agent.json";
/** The longest wait for the directory's lock. Another agent holds it for a few milliseconds per agent of the host. */
const LOCK_WAIT_MS = 10_000;
const LOCK_RETRY_MS = 50;

/**
 * Returns the name of this process's network namespace, such as `net:[4026531840]`, which is the same for all processes
 * in it.
 */
export function networkNamespace(): Promise<string> {
  return readlink("/proc/self/ns/net");
}

/**
 * The agent's claim to its instance in its network namespace. The kernel releases it however the process ends, so a
 * killed agent never blocks another one.
 */
export class HostClaim {
  readonly #options: HostClaimOptions;
  readonly #lock: DirectoryLock;
  #agent: RunningAgent;

  private constructor(options: HostClaimOptions, lock: DirectoryLock) {
    this.#options = options;
    this.#lock = lock;
    this.#agent = options.agent;
  }

  /**
   * Acquires the claim. Rejects with HostConflict if another agent in the network namespace has the same instance or
   * belongs to the same cluster.
   */
  static async acquire(options: HostClaimOptions): Promise<HostClaim> {
    const { instance } = options.agent;
    const own = placeOf(options);
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    return withLock(options, async () => {
      await mkdir(own, { recursive: true, mode: 0o700 });
      const lock = await lockDirectory(own);
      if (lock === undefined) throw new HostConflict(describeUsedInstance(instance, await readRecord(own)));
      const claim = new HostClaim(options, lock);
      try {
        await claim.#record(options.agent);
      } catch (error) {
        lock.release();
        throw error;
      }
      return claim;
    });
  }

  /**
   * Records that the agent joins a cluster. Rejects with HostConflict if another agent in the network namespace belongs
   * to a cluster with this authority.
   */
  async joins(authority: string): Promise<void> {
    const { authorities } = this.#agent;
    if (authorities.includes(authority)) return;
    const agent = { ...this.#agent, authorities: [...authorities, authority] };
    await withLock(this.#options, () => this.#record(agent));
    this.#agent = agent;
  }

  async close(): Promise<void> {
    await rm(placeOf(this.#options), { recursive: true, force: true });
    this.#lock.release();
  }

  async #record(agent: RunningAgent): Promise<void> {
    const conflict = conflictOf(agent, await othersOf(this.#options));
    if (conflict !== undefined) throw new HostConflict(conflict);
    const path = join(placeOf(this.#options), RECORD);
    await writeFile(`${path}.new`, JSON.stringify(agent), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }
}

function placeOf({ directory, namespace, agent }: HostClaimOptions): string {
  return join(directory, namespaceDirectory(namespace), agent.instance);
}

function namespaceDirectory(namespace: string): string {
  return namespace.replace(/[^a-z0-9]/g, "");
}

/** Calls `run` while no other agent of the host can change the directory. */
async function withLock<T>({ directory, clock }: HostClaimOptions, run: () => Promise<T>): Promise<T> {
  const never = new AbortController().signal;
  let lock = await lockDirectory(directory);
  for (let waitedMs = 0; lock === undefined && waitedMs < LOCK_WAIT_MS; waitedMs += LOCK_RETRY_MS) {
    await pause(clock, LOCK_RETRY_MS, never);
    lock = await lockDirectory(directory);
  }
  if (lock === undefined)
    throw new Error(`${directory} has been locked by another process for ${LOCK_WAIT_MS / 1000} s`);
  try {
    return await run();
  } finally {
    lock.release();
  }
}

/** Returns the running other agents in the network namespace, and removes the files of agents that have ended. */
async function othersOf(options: HostClaimOptions): Promise<readonly RunningAgent[]> {
  const { directory, namespace } = options;
  const own = placeOf(options);
  const others: RunningAgent[] = [];
  for (const inNamespace of await readdir(directory)) {
    for (const instance of await readdir(join(directory, inNamespace))) {
      const place = join(directory, inNamespace, instance);
      if (place === own || (await removeIfEnded(place))) continue;
      const agent = inNamespace === namespaceDirectory(namespace) ? await readRecord(place) : undefined;
      if (agent !== undefined) others.push(agent);
    }
    // Fails if the directory contains agents.
    await rmdir(join(directory, inNamespace)).catch(() => {});
  }
  return others;
}

async function removeIfEnded(place: string): Promise<boolean> {
  let lock: DirectoryLock | undefined;
  try {
    lock = await lockDirectory(place);
  } catch (error) {
    // An agent that ends removes its directory itself, possibly after this listing.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
  if (lock === undefined) return false;
  await rm(place, { recursive: true, force: true });
  lock.release();
  return true;
}

async function readRecord(place: string): Promise<RunningAgent | undefined> {
  try {
    const read: unknown = JSON.parse(await readFile(join(place, RECORD), "utf8"));
    return isRunningAgent(read) ? read : undefined;
  } catch {
    return undefined;
  }
}

function isRunningAgent(value: unknown): value is RunningAgent {
  if (typeof value !== "object" || value === null) return false;
  const { instance, nodeName, dataDir, pid, authorities } = value as Partial<RunningAgent>;
  const texts = [instance, nodeName, dataDir];
  return (
    texts.every((text) => typeof text === "string") &&
    typeof pid === "number" &&
    Array.isArray(authorities) &&
    authorities.every((pin) => typeof pin === "string")
  );
}
