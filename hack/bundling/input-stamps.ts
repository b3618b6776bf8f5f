import { statSync } from "node:fs";
import { join, relative } from "node:path";
import type { Plugin } from "esbuild";

/** The inputs of a build by their paths relative to `root`, each with a stamp from before the build read it. */
export class InputStamps {
  readonly #root: string;
  readonly #stamps = new Map<string, string>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Records a file's stamp. Must be called before the file is read. Missing files are not recorded. */
  note(path: string): void {
    const now = stamp(join(this.#root, path));
    if (now !== undefined && !this.#stamps.has(path)) this.#stamps.set(path, now);
  }

  /** Returns a plugin that records each file before esbuild reads it. */
  plugin(): Plugin {
    return {
      name: "note-inputs",
      setup: ({ onLoad }) =>
        onLoad({ filter: /^/, namespace: "file" }, ({ path }) => {
          this.note(relative(this.#root, path));
          return undefined;
        }),
    };
  }

  toJSON(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#stamps);
  }
}

/** Returns the size and the modification time of a file, or undefined if it is missing. */
export function stamp(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && `${stats.size} ${stats.mtimeMs}`;
}
