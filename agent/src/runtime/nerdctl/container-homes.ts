import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";

/** One container's directory: nerdctl's state for it, and its id. */
export interface ContainerHome {
  readonly name: string;
  readonly dir: string;
  /** `--data-root` of the call that makes it. */
  readonly dataRoot: string;
  /** `--cidfile`: known even if nerdctl is killed half-way. */
  readonly idFile: string;
}

/**
 * Each container gets a data root of its own. With a common one, nerdctl rewrites every other container's hosts file under one lock at
 * each start and removal (60 containers: 2.5 times as slow), and leaves a file behind for each. Names stay unique: they are the
 * directories' names.
 */
export class ContainerHomes {
  readonly #dir: string;
  readonly #commonRoot: string;

  /** `commonRoot` is the data root of all other calls. */
  constructor(dir: string, commonRoot: string) {
    this.#dir = dir;
    this.#commonRoot = commonRoot;
  }

  /** Undefined if the name is taken. */
  async claim(name: string): Promise<ContainerHome | undefined> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const home = this.home(name);
    try {
      await mkdir(home.dir, { mode: 0o700 });
      return home;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
      throw error;
    }
  }

  home(name: string): ContainerHome {
    const dir = join(this.#dir, name);
    return { name, dir, dataRoot: join(dir, "nerdctl"), idFile: join(dir, "id") };
  }

  async release(home: ContainerHome): Promise<void> {
    await rm(home.dir, { recursive: true, force: true });
  }

  /** Releases the homes of containers that are gone. */
  async releaseIds(ids: ReadonlySet<string>): Promise<void> {
    for (const home of await this.#list()) {
      const id = await readId(home);
      if (id !== undefined && ids.has(id)) await this.release(home);
    }
    for (const dir of await this.#shadows())
      if (ids.has(basename(dir))) await rm(dir, { recursive: true, force: true });
  }

  /** Releases homes older than `beforeMs` (wall clock) whose container is not among `alive`: left by a call that was cut off. */
  async sweep(alive: ReadonlySet<string>, beforeMs: number): Promise<void> {
    for (const home of await this.#list()) {
      const id = await readId(home);
      if (id !== undefined && alive.has(id)) continue;
      const made = await stat(home.dir).catch(() => undefined);
      if (made !== undefined && made.mtimeMs < beforeMs) await this.release(home);
    }
    for (const dir of await this.#shadows())
      if (!alive.has(basename(dir))) await rm(dir, { recursive: true, force: true });
  }

  /** nerdctl makes an empty directory in the data root at hand for every container that it looks at. */
  async #shadows(): Promise<readonly string[]> {
    const parents = (await list(this.#commonRoot)).map((hash) => join(this.#commonRoot, hash, "containers"));
    const namespaces = await Promise.all(
      parents.map(async (dir) => (await list(dir)).map((name) => join(dir, name))),
    );
    const shadows = await Promise.all(
      namespaces.flat().map(async (dir) => (await list(dir)).map((name) => join(dir, name))),
    );
    return shadows.flat();
  }

  async #list(): Promise<readonly ContainerHome[]> {
    return (await list(this.#dir)).map((name) => this.home(name));
  }
}

function list(dir: string): Promise<readonly string[]> {
  return readdir(dir).catch(() => []);
}

/** Undefined until nerdctl has written it. */
export async function readId(home: ContainerHome): Promise<string | undefined> {
  const id = await readFile(home.idFile, "utf8").catch(() => "");
  return isContainerId(id.trim()) ? id.trim() : undefined;
}

/** nerdctl takes names and prefixes for ids, and anything with a dash in front for options: only whole ids are passed on. */
export function isContainerId(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** True while some nerdctl, perhaps of an agent that was killed, is at work on this home. */
export async function isBusy(home: ContainerHome): Promise<boolean> {
  const argument = `--cidfile=${home.idFile}`;
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const argv = await readFile(`/proc/${entry}/cmdline`, "utf8").catch(() => "");
    if (argv.split("\0").includes(argument)) return true;
  }
  return false;
}
