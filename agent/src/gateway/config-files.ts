import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EnvoyPaths } from "./envoy/envoy-paths.ts";
import type { ResourceFile } from "./envoy/json.ts";

/**
 * Writes the files that Envoy reads. Each file is renamed into place, which also notifies Envoy. Nothing is synced,
 * because everything can be rebuilt. Unchanged files are not written.
 */
export class ConfigFiles {
  readonly #places: EnvoyPaths;
  /** Versions of written files by path. A file of an earlier agent is read once. */
  readonly #written = new Map<string, string>();

  private constructor(places: EnvoyPaths) {
    this.#places = places;
  }

  /** Reports whether configuration files of this or an earlier agent exist. */
  static async exist(places: EnvoyPaths): Promise<boolean> {
    return (await stat(places.dir).catch(() => undefined)) !== undefined;
  }

  static async open(places: EnvoyPaths): Promise<ConfigFiles> {
    for (const dir of [places.dir, places.endpointsDir, places.secretsDir]) {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await chmod(dir, 0o700);
    }
    return new ConfigFiles(places);
  }

  /** Writes the file. Returns whether its content changed. */
  async put(path: string, file: ResourceFile): Promise<boolean> {
    if (this.#written.get(path) === file.version) return false;
    const known = this.#written.has(path);
    if (!known && (await readFile(path, "utf8").catch(() => "")) === file.text) {
      this.#written.set(path, file.version);
      return false;
    }
    await this.write(path, file);
    return true;
  }

  /** Writes the file even if it is unchanged, so that Envoy reads it again. */
  async write(path: string, file: ResourceFile): Promise<void> {
    const temporary = `${path}.tmp`;
    await writeFile(temporary, file.text, { mode: 0o600 });
    await rename(temporary, path);
    this.#written.set(path, file.version);
  }

  /** Removes endpoints and certificates that none of these paths names. */
  async keepOnly(paths: ReadonlySet<string>): Promise<void> {
    for (const dir of [this.#places.endpointsDir, this.#places.secretsDir]) {
      for (const name of await readdir(dir)) {
        const path = join(dir, name);
        if (paths.has(path)) continue;
        this.#written.delete(path);
        await rm(path, { force: true });
      }
    }
  }

  /** Removes all files, including certificates, after Envoy was removed for good. */
  async removeAll(): Promise<void> {
    this.#written.clear();
    await rm(this.#places.dir, { recursive: true, force: true });
  }
}
