import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** Renames directories durably, so that renames survive a loss of power. */
export interface DirectoryMoves {
  rename(from: string, to: string): Promise<void>;
  /** Syncs the directory, which makes renames in it durable. */
  sync(directory: string): Promise<void>;
}

export const diskMoves: DirectoryMoves = {
  rename,
  sync: async (path) => {
    const directory = await open(path, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  },
};

/**
 * Renames a directory within its parent, and resolves once this is on disk, before any later step.
 */
export async function moveDirectory(from: string, to: string, moves: DirectoryMoves): Promise<void> {
  await moves.rename(from, to);
  await moves.sync(dirname(to));
}
