import { mkdir, readdir, rename, rm, rmdir, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { KeyedMutex } from "@forage/common/keyed-mutex";
import type { NoteDamage } from "../damage-reports.ts";
import { type ClaimRecord, claimRecordPath, readClaimRecord, writeClaimRecord } from "./claim-record.ts";
import {
  exists,
  type LimitedDirectoryOptions,
  makeLimitedDirectory,
  type ReadyDirectory,
} from "./limited-directory.ts";
import { detachLoopDevicesOf } from "./loop-devices.ts";
import { mountsBelow, readMountTable } from "./mount-table.ts";
import { codeOf, removeMountPoint, removeTree } from "./mounts.ts";
import { type ClaimState, VolumeError } from "./volumes.ts";

const USERS = "users";
const DATA = "data";
const MOUNT = "mnt";
/**
 * The prefix of a claim that is being deleted, so that a claim under its own name is always complete. No claim's name
 * begins with a dot.
 */
const GONE = ".gone-";

export interface ClaimStoreOptions extends LimitedDirectoryOptions {
  readonly directory: string;
  readonly mutex: KeyedMutex;
  readonly noteDamage: NoteDamage;
}

export interface HeldClaim extends ReadyDirectory {
  readonly capacityBytes?: number;
}

/**
 * Keeps persistent claims in `<directory>/<namespace>/<name>/` with `claim.json`, a file `users/<pod uid>` for each pod
 * that uses the claim, and the data: `data.img` if the claim has a capacity and the host has loop devices, else the
 * directory `data`.
 */
export class ClaimStore {
  readonly #options: ClaimStoreOptions;

  constructor(options: ClaimStoreOptions) {
    this.#options = options;
  }

  /** Creates the claim if it is new, and marks it as used. */
  hold(
    namespace: string,
    name: string,
    capacityBytes: number | undefined,
    podUid: string,
    signal: AbortSignal,
  ): Promise<HeldClaim> {
    return this.#inTurn(namespace, name, async (home) => {
      // Mark the claim first: everything created after that is cleaned up, or at least kept. If the namespace's
      // directory is being removed at this moment, it is created again.
      await mkdir(join(home, USERS), { recursive: true, mode: 0o700 });
      const record = await this.#recordOf(home, capacityBytes);
      await writeFile(join(home, USERS, podUid), "", { mode: 0o600 });
      const ready = await makeLimitedDirectory(
        {
          home: join(home, DATA),
          mountPoint: join(home, MOUNT),
          kind: "durable",
          limitBytes: record.capacityBytes,
        },
        this.#options,
        signal,
      ).catch((error) => rethrowWith(`claim ${namespace}/${name}`, error));
      return { ...ready, ...(record.capacityBytes !== undefined && { capacityBytes: record.capacityBytes }) };
    });
  }

  /** Releases the pod's claims. Claims without other users are unmounted, with all writes on disk. */
  async letGo(podUid: string, signal: AbortSignal): Promise<void> {
    for (const [namespace, name] of await this.#names()) {
      await this.#inTurn(namespace, name, async (home) => {
        if (!(await usersOf(home)).includes(podUid)) return;
        await rm(join(home, USERS, podUid), { force: true });
        await this.#unmountUnused(home, signal);
      });
    }
  }

  /**
   * Unmounts claims without users. A program that a killed agent started may still mount one, or attach its device,
   * after the next agent has checked.
   */
  async unmountUnused(signal: AbortSignal): Promise<void> {
    for (const [namespace, name] of await this.#names())
      await this.#inTurn(namespace, name, (home) => this.#unmountUnused(home, signal));
  }

  /**
   * Removes unknown users, marks the claims that running containers use, and completes interrupted operations. @param
   * inUse uids of pods with running containers, by the claim's `<namespace>/<name>`.
   */
  async settle(
    knownPodUids: ReadonlySet<string>,
    inUse: ReadonlyMap<string, readonly string[]>,
    signal: AbortSignal,
  ): Promise<void> {
    for (const namespace of await namesIn(this.#options.directory)) {
      const gone = (await namesIn(join(this.#options.directory, namespace))).filter((it) =>
        it.startsWith(GONE),
      );
      for (const name of gone) {
        await removeTree(join(this.#options.directory, namespace, name), this.#options.children, signal);
      }
      await removeIfEmpty(join(this.#options.directory, namespace));
    }
    for (const [namespace, name] of await this.#names()) {
      await this.#inTurn(namespace, name, async (home) => {
        await this.#markUsed(home, inUse.get(`${namespace}/${name}`) ?? []);
        await this.#checkRecord(home);
        const unknown = (await usersOf(home)).filter((uid) => !knownPodUids.has(uid));
        await Promise.all(unknown.map((uid) => rm(join(home, USERS, uid), { force: true })));
        await this.#unmountUnused(home, signal);
      });
    }
  }

  async list(): Promise<readonly ClaimState[]> {
    const table = await readMountTable();
    const states = (await this.#names()).map(async ([namespace, name]) => {
      const home = this.#home(namespace, name);
      const [capacityBytes, users] = await Promise.all([capacityOf(home), usersOf(home)]);
      const isMounted = mountsBelow(table, join(home, MOUNT)).length > 0;
      const usedBytes = isMounted ? await usedOf(join(home, MOUNT)) : undefined;
      return {
        namespace,
        name,
        users,
        ...(capacityBytes !== undefined && { capacityBytes }),
        ...(usedBytes !== undefined && { usedBytes }),
      };
    });
    return Promise.all(states);
  }

  remove(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    return this.#inTurn(namespace, name, async (home) => {
      const users = await usersOf(home);
      if (users.length > 0) {
        throw new VolumeError(
          "IN_USE",
          `claim ${namespace}/${name} is in use by ${users.length} of this host's pods`,
        );
      }
      await this.#unmountUnused(home, signal);
      const gone = join(this.#options.directory, namespace, `${GONE}${name}`);
      await removeTree(gone, this.#options.children, signal);
      const isThere = await rename(home, gone).then(
        () => true,
        (error) => codeOf(error) !== "ENOENT" && Promise.reject(error),
      );
      if (isThere) await removeTree(gone, this.#options.children, signal);
      await removeIfEmpty(join(this.#options.directory, namespace));
    });
  }

  /**
   * Returns the claim's record. A missing or damaged record is replaced by one with the capacity that the pod requests,
   * at most the size of the claim's image. Leaves the data untouched.
   */
  async #recordOf(home: string, capacityBytes: number | undefined): Promise<ClaimRecord> {
    const found = await readClaimRecord(home);
    if (found.type === "sound") return found.record;
    const imageSize = await imageBytes(home);
    const record = {
      capacityBytes:
        imageSize === undefined ? capacityBytes : Math.min(imageSize, capacityBytes ?? imageSize),
    };
    await writeClaimRecord(home, record);
    return record;
  }

  /** Reports a missing record. A claim that was marked as used contains data only if its record was written. */
  async #checkRecord(home: string): Promise<void> {
    const found = await readClaimRecord(home).catch(() => undefined);
    if (found === undefined || found.type === "sound") return;
    const hasData = (await exists(join(home, DATA))) || (await exists(join(home, `${DATA}.img`)));
    if (found.type === "missing" && !hasData) return;
    const reason = found.type === "missing" ? "it is missing" : found.reason;
    const remedy = "the next container that uses the claim has it written again; the data is untouched";
    this.#options.noteDamage(claimRecordPath(home), reason, remedy);
  }

  async #markUsed(home: string, podUids: readonly string[]): Promise<void> {
    const marked = await usersOf(home);
    for (const uid of podUids) {
      if (marked.includes(uid)) continue;
      const mark = join(home, USERS, uid);
      await mkdir(join(home, USERS), { recursive: true, mode: 0o700 });
      await writeFile(mark, "", { mode: 0o600 });
      this.#options.noteDamage(
        mark,
        "it is missing",
        "it is written again, since a running container uses the claim",
      );
    }
  }

  async #unmountUnused(home: string, signal: AbortSignal): Promise<void> {
    if ((await usersOf(home)).length > 0) return;
    await this.#options.mounts.unmountAll(join(home, MOUNT), signal);
    await removeMountPoint(join(home, MOUNT));
    await detachLoopDevicesOf(home, this.#options.children, signal);
  }

  async #names(): Promise<readonly (readonly [namespace: string, name: string])[]> {
    const namespaces = await namesIn(this.#options.directory);
    const names = namespaces.map(async (namespace) =>
      (await namesIn(join(this.#options.directory, namespace))).map((name) => [namespace, name] as const),
    );
    return (await Promise.all(names)).flat().filter(([, name]) => !name.startsWith(GONE));
  }

  #home(namespace: string, name: string): string {
    return join(this.#options.directory, namespace, name);
  }

  #inTurn<Result>(namespace: string, name: string, work: (home: string) => Promise<Result>): Promise<Result> {
    return this.#options.mutex.run(`claim ${namespace}/${name}`, () => work(this.#home(namespace, name)));
  }
}

function rethrowWith(what: string, error: unknown): never {
  if (!(error instanceof VolumeError)) throw error;
  throw new VolumeError(error.code, `${what}: ${error.message}`, { cause: error });
}

/** Removes the directory of a namespace without claims. */
async function removeIfEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch((error) => {
    if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(codeOf(error) ?? "")) throw error;
  });
}

function usersOf(home: string): Promise<readonly string[]> {
  return namesIn(join(home, USERS));
}

async function usedOf(path: string): Promise<number> {
  const { blocks, bfree, bsize } = await statfs(path);
  return (blocks - bfree) * bsize;
}

/**
 * Returns the claim's capacity. Undefined: no limit, or unknown because the record is damaged and the claim has no
 * image.
 */
async function capacityOf(home: string): Promise<number | undefined> {
  const found = await readClaimRecord(home).catch(() => undefined);
  return found?.type === "sound" ? found.record.capacityBytes : await imageBytes(home);
}

/** Returns the size of the claim's image, which is slightly more than its capacity. Undefined if it has none. */
async function imageBytes(home: string): Promise<number | undefined> {
  const found = await stat(join(home, `${DATA}.img`)).catch(() => undefined);
  return found?.size;
}

/**
 * Lists a directory. Returns an empty list only if it doesn't exist, because a claim that can't be read must not count
 * as unused.
 */
async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}
