import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

/** LevelDB's own: the lock must not be touched, the logs are only for reading by people. */
const NOT_KEPT = new Set(["LOCK", "LOG", "LOG.old"]);

/**
 * The database's files as they were found, for as long as it is being opened and checked. Opening makes LevelDB recover:
 * it writes new files and deletes the old, also those it could make no sense of. When the check then fails, the old
 * ones are put back, so that a refused store is left just as it was found and more can be tried on it.
 *
 * The files are hard links, which cost nothing: LevelDB never writes to a file it found.
 */
export class Evidence {
  readonly #dir: string;
  readonly #kept: string;
  readonly #found: "absent" | "linked" | "linked before" | "not linked";

  private constructor(dir: string, found: "absent" | "linked" | "linked before" | "not linked") {
    this.#dir = dir;
    this.#kept = keptDir(dir);
    this.#found = found;
  }

  static keep(dir: string): Evidence {
    const kept = keptDir(dir);
    if (!existsSync(dir) && existsSync(kept)) renameSync(kept, dir);
    if (!existsSync(dir)) return new Evidence(dir, "absent");
    // Left over from an opening that was cut off: those are older, and nothing was acknowledged since.
    if (existsSync(kept)) return new Evidence(dir, "linked before");
    return new Evidence(dir, linkFiles(dir, kept) ? "linked" : "not linked");
  }

  /** The store is sound: what LevelDB made of the files is what counts now. */
  discard(): void {
    rmSync(this.#kept, { recursive: true, force: true });
  }

  /** The store is refused: its files are again those that were found. The database must be closed. */
  putBack(): void {
    if (this.#found === "not linked") return;
    rmSync(this.#dir, { recursive: true, force: true });
    if (this.#found !== "absent") renameSync(this.#kept, this.#dir);
  }

  /** Someone else is using the files, which therefore stay; only what was made here goes. */
  withdraw(): void {
    if (this.#found === "linked") this.discard();
  }
}

function keptDir(dir: string): string {
  return `${dir}.before-open`;
}

/** A second name for each file of a database, under another directory. False where there are no hard links. */
export function linkFiles(dir: string, to: string): boolean {
  const linking = `${to}.incomplete`;
  rmSync(linking, { recursive: true, force: true });
  mkdirSync(linking, { mode: 0o700 });
  try {
    for (const name of readdirSync(dir)) {
      if (!NOT_KEPT.has(name)) linkSync(join(dir, name), join(linking, name));
    }
  } catch (error) {
    rmSync(linking, { recursive: true, force: true });
    if (isUnsupported(error)) return false;
    throw error;
  }
  renameSync(linking, to);
  return true;
}

function isUnsupported(error: unknown): boolean {
  const codes: unknown[] = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];
  return error instanceof Error && "code" in error && codes.includes(error.code);
}
