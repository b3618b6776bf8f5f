import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseDocument } from "yaml";
import { didYouMean } from "../command/suggest.ts";
import { CliError } from "../errors.ts";

const KEYS = ["server", "caFile", "tokenFile", "namespace"] as const;

/** The settings of a configuration file. Paths are absolute. */
export type FileSettings = { readonly [Key in (typeof KEYS)[number]]?: string };

export interface FoundConfig {
  /** Undefined when there is no file, which is fine. */
  readonly path: string | undefined;
  readonly settings: FileSettings;
}

/** The named file, or the first that is there of the usual ones. */
export function readConfigFile(named: string | undefined, homeDir: string): FoundConfig {
  const usual = [join(homeDir, ".config/forage/config.yaml"), "/etc/forage/cli.yaml"];
  for (const path of named === undefined ? usual : [named]) {
    const text = readIfThere(path);
    if (text !== undefined) return { path, settings: parseSettings(path, text, homeDir) };
  }
  if (named !== undefined) throw new CliError("CONFIG", `the configuration file ${named} is not there`);
  return { path: undefined, settings: {} };
}

function parseSettings(path: string, text: string, homeDir: string): FileSettings {
  const document = parseDocument(text, { stringKeys: true });
  const [problem] = document.errors;
  if (problem !== undefined) throw new CliError("CONFIG", `${path}: ${problem.message.split("\n", 1)[0]}`);
  const content: unknown = document.toJS() ?? {};
  if (typeof content !== "object" || Array.isArray(content)) {
    throw new CliError("CONFIG", `${path} must hold ${KEYS.join(", ")}`);
  }
  const settings: Record<string, string> = {};
  for (const [key, value] of Object.entries(content ?? {})) {
    if (!KEYS.some((known) => known === key)) {
      const hint =
        key === "token"
          ? "; keep the token in a file of its own, and name that with tokenFile"
          : didYouMean(key, KEYS);
      throw new CliError("CONFIG", `${path}: unknown key "${key}"${hint}`);
    }
    if (typeof value !== "string" || value === "")
      throw new CliError("CONFIG", `${path}: ${key} must be text`);
    settings[key] = key.endsWith("File") ? absolute(value, dirname(resolve(path)), homeDir) : value;
  }
  return settings;
}

function absolute(path: string, directory: string, homeDir: string): string {
  return path.startsWith("~/") ? join(homeDir, path.slice(2)) : resolve(directory, path);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new CliError("CONFIG", `can't read the configuration file ${path}: ${code}`, { cause: error });
  }
}
