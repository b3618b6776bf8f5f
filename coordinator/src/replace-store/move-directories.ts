import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** Renames directories so that the change survives a loss of power. */
export interface DirectoryMoves {
  rename(from: string, to: string): Promise<void>;
  /** Makes the names in the directory durable. */
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

/** Renames a directory within its parent, and returns once that is on disk: no later step may be there without it. */
export async function moveDirectory(from: string, to: string, moves: DirectoryMoves): Promise<void> {
  await moves.rename(from, to);
  await moves.sync(dirname(to));
}
