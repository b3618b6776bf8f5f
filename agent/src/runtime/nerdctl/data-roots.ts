import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, realpath, rm, stat, symlink } from "node:fs/promises";
import { basename, join } from "node:path";

/** The directory of one container: nerdctl's state for it, and its id. */
export interface DataRoot {
  readonly name: string;
  readonly dir: string;
  /** The `--data-root` of the call that creates the container. */
  readonly dataRoot: string;
  /** The `--cidfile`, which holds the id even if nerdctl is killed half-way. */
  readonly idFile: string;
}

export interface DataRootPlaces {
  /** The directory with one data root for each container. */
  readonly dataRoots: string;
  /** The data root for all calls that create no container. */
  readonly commonRoot: string;
  /**
   * A directory on disk for data that containers write to volumes that only their images declare (`VOLUME`). Removed
   * with the container.
   */
  readonly volumes: string;
  /** The address of containerd as passed to nerdctl. */
  readonly address: string;
}

/**
 * Assigns each container a data root of its own. With a common data root, nerdctl rewrites the hosts file of every
 * other container under one lock at each start and removal (60 containers: 2.5 times as slow) and leaves a file behind
 * for each container. Names are unique because they name the directories.
 */
export class DataRoots {
  readonly #places: DataRootPlaces;

  constructor(places: DataRootPlaces) {
    this.#places = places;
  }

  /** Creates the data root of a container. Returns undefined if the name is taken. */
  async claim(name: string): Promise<DataRoot | undefined> {
    await mkdir(this.#places.dataRoots, { recursive: true, mode: 0o700 });
    const home = this.home(name);
    try {
      await mkdir(home.dir, { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
      throw error;
    }
    await this.#linkVolumes(home);
    return home;
  }

  home(name: string): DataRoot {
    const dir = join(this.#places.dataRoots, name);
    return { name, dir, dataRoot: join(dir, "nerdctl"), idFile: join(dir, "id") };
  }

  async release(home: DataRoot): Promise<void> {
    await rm(join(this.#places.volumes, home.name), { recursive: true, force: true });
    await rm(home.dir, { recursive: true, force: true });
  }

  /** Data roots are in memory, but volumes such as a database's need a disk. */
  async #linkVolumes({ name, dataRoot }: DataRoot): Promise<void> {
    const volumes = join(this.#places.volumes, name);
    await mkdir(volumes, { recursive: true, mode: 0o700 });
    const store = join(dataRoot, await addressHash(this.#places.address));
    await mkdir(store, { recursive: true, mode: 0o700 });
    await symlink(volumes, join(store, "volumes"));
  }

  /** Removes the data roots of containers that no longer exist. */
  async releaseIds(ids: ReadonlySet<string>): Promise<void> {
    for (const home of await this.#list()) {
      const id = await readId(home);
      if (id !== undefined && ids.has(id)) await this.release(home);
    }
    for (const dir of await this.#shadows())
      if (ids.has(basename(dir))) await rm(dir, { recursive: true, force: true });
  }

  /** Removes image volumes whose data root a reboot has removed. */
  async #sweepVolumes(beforeMs: number): Promise<void> {
    const dataRoots = new Set(await list(this.#places.dataRoots));
    for (const name of await list(this.#places.volumes)) {
      const dir = join(this.#places.volumes, name);
      const made = dataRoots.has(name) ? undefined : await stat(dir).catch(() => undefined);
      if (made !== undefined && made.mtimeMs < beforeMs) await rm(dir, { recursive: true, force: true });
    }
  }

  /**
   * Removes data roots older than `beforeMs` (wall clock) whose container is not in `alive`, which interrupted calls
   * have left. Because the clock may jump, data roots in use by a call of this or another agent stay, whatever their
   * age.
   */
  async sweep(alive: ReadonlySet<string>, beforeMs: number, underWay: ReadonlySet<string>): Promise<void> {
    for (const home of await this.#list()) {
      const id = await readId(home);
      if (underWay.has(home.name) || (id !== undefined && alive.has(id))) continue;
      const made = await stat(home.dir).catch(() => undefined);
      if (made !== undefined && made.mtimeMs < beforeMs && !(await isBusy(home))) await this.release(home);
    }
    await this.#sweepVolumes(beforeMs);
    for (const dir of await this.#shadows())
      if (!alive.has(basename(dir))) await rm(dir, { recursive: true, force: true });
  }

  /**
   * Returns the empty directories that nerdctl creates in the current data root for every container that it inspects.
   */
  async #shadows(): Promise<readonly string[]> {
    const parents = (await list(this.#places.commonRoot)).map((hash) =>
      join(this.#places.commonRoot, hash, "containers"),
    );
    const namespaces = await Promise.all(
      parents.map(async (dir) => (await list(dir)).map((name) => join(dir, name))),
    );
    const shadows = await Promise.all(
      namespaces.flat().map(async (dir) => (await list(dir)).map((name) => join(dir, name))),
    );
    return shadows.flat();
  }

  async #list(): Promise<readonly DataRoot[]> {
    return (await list(this.#places.dataRoots)).map((name) => this.home(name));
  }
}

/** Returns the name of nerdctl's directory in a data root: a hash of containerd's address with links resolved. */
async function addressHash(address: string): Promise<string> {
  const path = address.replace(/^unix:\/\//, "");
  const real = await realpath(path).catch(() => path);
  return createHash("sha256").update(real).digest("hex").slice(0, 8);
}

function list(dir: string): Promise<readonly string[]> {
  return readdir(dir).catch(() => []);
}

/** Returns the container's id, or undefined until nerdctl has written it. */
export async function readId(home: DataRoot): Promise<string | undefined> {
  const id = await readFile(home.idFile, "utf8").catch(() => "");
  return isContainerId(id.trim()) ? id.trim() : undefined;
}

/**
 * Reports whether the text is a whole container id. nerdctl also accepts names and prefixes as ids, and parses anything
 * with a leading dash as an option.
 */
export function isContainerId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** Reports whether a nerdctl process, possibly of an earlier agent, is using this data root. */
export async function isBusy(home: DataRoot): Promise<boolean> {
  const argument = `--cidfile=${home.idFile}`;
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const argv = await readFile(`/proc/${entry}/cmdline`, "utf8").catch(() => "");
    if (argv.split("\0").includes(argument)) return true;
  }
  return false;
}
