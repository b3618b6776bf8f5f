import { chmodSync, lstatSync, mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { CliError } from "../errors.ts";

/**
 * Replaces the file atomically. Follows a symbolic link, and refuses anything but a regular file.
 * `id` makes the name of the temporary file unique.
 */
export function writeConfig(path: string, text: string, id: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const { target, mode } = existing(path);
    const temporary = `${target}.${id}`;
    try {
      writeFileSync(temporary, text, { mode, flag: "wx" });
      // The umask applied when the file was created, so the former mode is restored.
      chmodSync(temporary, mode);
      renameSync(temporary, target);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new CliError("CONFIG", `can't write the configuration file ${path}: ${code}`, { cause: error });
  }
}

const NEW_MODE = 0o600;

function existing(path: string): { readonly target: string; readonly mode: number } {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return { target: path, mode: NEW_MODE };
  const target = realpathSync(path);
  const stats = lstatSync(target);
  if (!stats.isFile())
    throw new CliError("CONFIG", `${path} is not a regular file: name another with --config`);
  return { target, mode: stats.mode & 0o777 };
}
