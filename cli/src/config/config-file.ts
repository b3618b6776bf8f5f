import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseDocument } from "yaml";
import { didYouMean } from "../command/suggest.ts";
import { CliError } from "../errors.ts";

export const SETTING_KEYS = ["server", "caFile", "tokenFile", "namespace"] as const;
/** The keys that concern contexts as a whole. */
const CONTEXT_KEYS = ["current", "contexts"] as const;

/**
 * The settings of a configuration file, or of one of its contexts. Paths are absolute. Several
 * servers are separated by commas.
 */
export type FileSettings = { readonly [Key in (typeof SETTING_KEYS)[number]]?: string };

export interface FoundConfig {
  /** The path of the file; undefined if there is no file, because it is optional. */
  readonly path: string | undefined;
  /** The settings outside of any context. */
  readonly settings: FileSettings;
  /** The context to use by default. */
  readonly current: string | undefined;
  readonly contexts: ReadonlyMap<string, FileSettings>;
}

const NO_CONFIG: FoundConfig = { path: undefined, settings: {}, current: undefined, contexts: new Map() };

/** The configuration file for all users of the machine. */
export const SHARED_CONFIG = "/etc/forage/cli.yaml";

export function userConfigPath(homeDir: string): string {
  return join(homeDir, ".config/forage/config.yaml");
}

/** Reads the named file, or the first existing one of the default files. */
export function readConfigFile(named: string | undefined, homeDir: string): FoundConfig {
  for (const path of named === undefined ? [userConfigPath(homeDir), SHARED_CONFIG] : [named]) {
    const text = readIfThere(path);
    if (text !== undefined) return parseConfig(path, text, homeDir);
  }
  if (named !== undefined) throw new CliError("CONFIG", `the configuration file ${named} does not exist`);
  return NO_CONFIG;
}

/** Parses a configuration. Throws CONFIG if it is invalid. */
export function parseConfig(path: string, text: string, homeDir: string): FoundConfig {
  const document = parseDocument(text, { stringKeys: true });
  const [problem] = document.errors;
  if (problem !== undefined) throw new CliError("CONFIG", `${path}: ${problem.message.split("\n", 1)[0]}`);
  const content: unknown = document.toJS() ?? {};
  if (!isMapping(content)) {
    throw new CliError("CONFIG", `${path} must hold ${[...SETTING_KEYS, ...CONTEXT_KEYS].join(", ")}`);
  }
  const { current, contexts = {}, ...own } = content;
  if (current !== undefined && current !== null && (typeof current !== "string" || current === ""))
    throw new CliError("CONFIG", `${path}: current must be the name of a context`);
  if (contexts !== null && !isMapping(contexts))
    throw new CliError("CONFIG", `${path}: contexts must hold a name with ${SETTING_KEYS.join(", ")} each`);
  const base = { path, directory: dirname(resolve(path)), homeDir };
  const named = Object.entries(contexts ?? {}).map(
    ([name, value]) => [checkContextName(name, path), parseContext(value, name, base)] as const,
  );
  const settings = parseSettings(own, "", [...SETTING_KEYS, ...CONTEXT_KEYS], base);
  return { path, settings, current: current ?? undefined, contexts: new Map(named) };
}

/** Checks the name of a context. Its characters need no quotes in a shell. Throws CONFIG. */
export function checkContextName(name: string, source: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name)) return name;
  throw new CliError(
    "CONFIG",
    `${source}: "${name}" is not the name of a context: use letters, digits, ".", "_" and "-", 63 at most`,
  );
}

interface Base {
  readonly path: string;
  /** The directory to which paths are relative. */
  readonly directory: string;
  readonly homeDir: string;
}

function parseContext(value: unknown, name: string, base: Base): FileSettings {
  if (isMapping(value)) return parseSettings(value, `contexts.${name}.`, SETTING_KEYS, base);
  throw new CliError("CONFIG", `${base.path}: contexts.${name} must hold ${SETTING_KEYS.join(", ")}`);
}

function parseSettings(
  content: Readonly<Record<string, unknown>>,
  prefix: string,
  known: readonly string[],
  { path, directory, homeDir }: Base,
): FileSettings {
  const settings: Record<string, string> = {};
  for (const [key, value] of Object.entries(content)) {
    if (!SETTING_KEYS.some((each) => each === key)) {
      const hint =
        key === "token"
          ? "; keep the token in a file of its own, and name that with tokenFile"
          : didYouMean(key, known);
      throw new CliError("CONFIG", `${path}: unknown key "${prefix}${key}"${hint}`);
    }
    const text = key === "server" && isTextList(value) ? value.join(",") : value;
    if (typeof text !== "string" || text === "") {
      const form = key === "server" ? "an address or a list of addresses" : "text";
      throw new CliError("CONFIG", `${path}: ${prefix}${key} must be ${form}`);
    }
    settings[key] = key.endsWith("File") ? absolute(text, directory, homeDir) : text;
  }
  return settings;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function absolute(path: string, directory: string, homeDir: string): string {
  return path.startsWith("~/") ? join(homeDir, path.slice(2)) : resolve(directory, path);
}

/** Returns the text of a file; undefined if the file does not exist. Throws CONFIG. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new CliError("CONFIG", `can't read the configuration file ${path}: ${code}`, { cause: error });
  }
}
