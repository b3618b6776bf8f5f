import { mkdir, readdir, readFile, readlink, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type DirectoryLock, lockDirectory } from "@forage/identity/directory-lock";
import { type Clock, pause } from "../clock.ts";
import { conflictOf, type RunningAgent, takenInstance } from "./conflict.ts";

export interface HostClaimOptions {
  /** Holds `NAMESPACE/INSTANCE/agent.json` of all agents of the host, and is for root only. */
  readonly directory: string;
  /** Name of the network namespace that the agent runs in. */
  readonly namespace: string;
  readonly agent: RunningAgent;
  readonly clock: Clock;
}

/** Two agents of one host conflict. The message names the other one. */
export class HostConflict extends Error {
  override readonly name = "HostConflict";
}

const RECORD = "agent.json";
/** The longest wait for the directory's lock. Another agent holds it for some milliseconds for each agent of the host. */
const LOCK_WAIT_MS = 10_000;
const LOCK_RETRY_MS = 50;

/** Returns the name of this process's network namespace, which is the same for all processes in it: `net:[4026531840]`. */
export function networkNamespace(): Promise<string> {
  return readlink("/proc/self/ns/net");
}

/**
 * The agent's place among the agents of its network namespace. The kernel gives the place back however the process ends, so an
 * agent that was killed is in no one's way.
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

  /** Rejects with HostConflict if another agent of the network namespace has the same instance or belongs to the same cluster. */
  static async take(options: HostClaimOptions): Promise<HostClaim> {
    const { instance } = options.agent;
    const own = placeOf(options);
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    return withLock(options, async () => {
      await mkdir(own, { recursive: true, mode: 0o700 });
      const lock = await lockDirectory(own);
      if (lock === undefined) throw new HostConflict(takenInstance(instance, await readRecord(own)));
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

  /** Rejects with HostConflict if another agent of the network namespace belongs to a cluster with this authority. */
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

/** Returns the other agents of the network namespace that run, and removes what agents that have ended left behind. */
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
    // Fails while it holds agents.
    await rmdir(join(directory, inNamespace)).catch(() => {});
  }
  return others;
}

async function removeIfEnded(place: string): Promise<boolean> {
  let lock: DirectoryLock | undefined;
  try {
    lock = await lockDirectory(place);
  } catch (error) {
    // An agent that ends removes its directory itself, also after this one has listed it.
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
