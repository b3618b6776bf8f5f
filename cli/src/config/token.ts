import { readFileSync, statSync } from "node:fs";
import { CliError } from "../errors.ts";

/** The size limit of a token file. A token has 60 characters. */
const MAX_BYTES = 4096;

/** Reads a bearer token from a file that not every user may read, or from a pipe. */
export function readTokenFile(path: string): string {
  let text: string;
  try {
    const stats = statSync(path);
    if (stats.isFile() && (stats.mode & 0o007) !== 0) {
      throw new CliError("CONFIG", `the token file ${path} is open to everybody; first: chmod 600 ${path}`);
    }
    if (stats.size > MAX_BYTES) throw new CliError("CONFIG", `the token file ${path} is too long to be one`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const what = code === "ENOENT" ? "does not exist" : `can't be read: ${code}`;
    throw new CliError("CONFIG", `the token file ${path} ${what}`, { cause: error });
  }
  return checkToken(text, `the token file ${path}`);
}

/**
 * Checks that a text is a token, which must not contain line ends. The error does not show the
 * text.
 */
export function checkToken(text: string, source: string): string {
  const token = text.trim();
  if (token === "") throw new CliError("CONFIG", `${source} is empty`);
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CliError("CONFIG", `${source} does not hold a token`);
  return token;
}
