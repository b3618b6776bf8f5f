import type { Stats } from "node:fs";
import { ArchiveError } from "./archive-error.ts";
import type { Directory } from "./directory.ts";

/** The end of a resolved path. The caller closes the directory. */
export interface ResolvedPath {
  readonly directory: Directory;
  /** The name of the entry in `directory`. Undefined if the path leads to the root itself. */
  readonly name: string | undefined;
  /** Undefined if the entry does not exist, but its directory does. */
  readonly stats: Stats | undefined;
}

/** The limit of followed links, equal to the kernel's. */
const LINKS_MAX = 40;

/**
 * Resolves a path as a process with the root directory `root` would: links are resolved within it, and `..` stops at
 * it. Never passes `..` or a link to the kernel, so that concurrent changes can't lead out of the root. Throws
 * NOT_FOUND and REFUSED.
 */
export async function resolveInRoot(root: Directory, path: string): Promise<ResolvedPath> {
  const held: { readonly directory: Directory; readonly name: string | undefined }[] = [
    { directory: await root.again(), name: undefined },
  ];
  const waiting = path.split("/").reverse();
  let links = 0;
  const dropTo = async (count: number): Promise<void> => {
    for (const { directory } of held.splice(count)) await directory.close();
  };
  try {
    while (waiting.length > 0) {
      const name = waiting.pop() ?? "";
      if (name === "" || name === ".") continue;
      if (name === "..") {
        await dropTo(Math.max(1, held.length - 1));
        continue;
      }
      const { directory } = held.at(-1) as { directory: Directory };
      const stats = await directory.stat(name);
      const last = waiting.every((rest) => rest === "" || rest === ".");
      if (stats?.isSymbolicLink()) {
        links += 1;
        if (links > LINKS_MAX) throw new ArchiveError("REFUSED", `${path} follows too many links`);
        const target = await directory.readLink(name);
        if (target.startsWith("/")) await dropTo(1);
        waiting.push(...target.split("/").reverse());
      } else if (last && !stats?.isDirectory()) {
        return await place(held, name, stats);
      } else if (stats?.isDirectory()) {
        held.push({ directory: await directory.enter(name), name });
      } else
        throw new ArchiveError("NOT_FOUND", `${path}: ${name} is ${stats ? "not a directory" : "missing"}`);
    }
    const { name, directory } = held.at(-1) as { name: string | undefined; directory: Directory };
    if (name === undefined) return await place(held, undefined, undefined);
    await directory.close();
    held.pop();
    const parent = held.at(-1) as { directory: Directory };
    return await place(held, name, await parent.directory.stat(name));
  } catch (error) {
    await dropTo(0);
    throw error;
  }

  async function place(
    from: typeof held,
    name: string | undefined,
    stats: Stats | undefined,
  ): Promise<ResolvedPath> {
    const { directory } = from.pop() as { directory: Directory };
    await dropTo(0);
    return { directory, name, stats };
  }
}
