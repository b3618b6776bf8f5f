import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "@forage/common/message-of";
import { checkSettings, SETTINGS, type Settings } from "./settings.ts";

export type Config = Settings;

/** The error of an invalid configuration. The message names the setting, its place and its valid values. */
export class ConfigError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = "ConfigError";
  }
}

const ENV_PREFIX = "FORAGE_AGENT_";
const FURTHER_FILES_MAX = 64;

/**
 * Reads the configuration. Flags take precedence over the environment (FORAGE_AGENT_…), then the files of FILE.d, then
 * the file. `hostName` is the default of the node's name.
 */
export async function readConfig(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  hostName: string,
): Promise<Config> {
  const flags = readFlags(argv);
  const file = flags.config ?? environment[`${ENV_PREFIX}CONFIG`];
  const values = new Map<string, { value: unknown; where: string }>();
  if (file !== undefined) {
    for (const where of [file, ...furtherFiles(file)])
      for (const [path, value] of flatten(await parseFile(where), "")) values.set(path, { value, where });
  }
  for (const { path } of SETTINGS) {
    const name = ENV_PREFIX + snakeOf(path).toUpperCase();
    const fromEnvironment = environment[name];
    if (fromEnvironment !== undefined) values.set(path, { value: fromEnvironment, where: name });
    const flag = kebabOf(path);
    const fromFlag = flags[flag];
    if (fromFlag !== undefined) values.set(path, { value: fromFlag, where: `--${flag}` });
  }
  const { settings, problems } = checkSettings(values, hostName);
  if (settings === undefined) throw new ConfigError(problems.join("\n"));
  return settings;
}

export function usage(): string {
  const flags = SETTINGS.map(({ path, form }) => `[--${kebabOf(path)} ${form}]`);
  return `usage: forage-agent [--config FILE] ${flags.join(" ")}`;
}

function readFlags(argv: readonly string[]): Record<string, string | undefined> {
  const names = ["config", ...SETTINGS.map(({ path }) => kebabOf(path))];
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" } as const]));
  try {
    return parseArgs({ args: [...argv], options, strict: true }).values as Record<string, string | undefined>;
  } catch (cause) {
    throw new ConfigError(`${messageOf(cause)}\n${usage()}`, {
      cause,
    });
  }
}

/**
 * Returns the directory whose files take precedence over the configuration file. Programs write there; people edit the
 * file itself.
 */
export function furtherDirectory(file: string): string {
  return `${file}.d`;
}

/** Returns the directory's files. Later names take precedence over earlier ones. */
function furtherFiles(file: string): string[] {
  const directory = furtherDirectory(file);
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return [];
    throw new ConfigError(`${directory}: can't be read`, { cause });
  }
  const desired = names.filter((name) => name.endsWith(".yaml")).sort();
  if (desired.length > FURTHER_FILES_MAX)
    throw new ConfigError(`${directory}: has ${desired.length} files, and ${FURTHER_FILES_MAX} are read`);
  return desired.map((name) => join(directory, name));
}

/** Parses a YAML file. The library is loaded here, because it is used only once. */
async function parseFile(path: string): Promise<Record<string, unknown>> {
  let value: unknown;
  try {
    const { parse } = await import("yaml");
    value = parse(readFileSync(path, "utf8"), { prettyErrors: true }) ?? {};
  } catch (cause) {
    throw new ConfigError(`${path}: ${messageOf(cause)}`, { cause });
  }
  if (isObject(value)) return value;
  throw new ConfigError(`${path}: must contain settings, one \`name: value\` in each line`);
}

/** Converts `{ http: { listen } }` to `http.listen`. A setting whose value is a map is kept whole. */
function flatten(value: Record<string, unknown>, prefix: string): [string, unknown][] {
  return Object.entries(value).flatMap(([key, inner]): [string, unknown][] => {
    const path = prefix + key;
    const isGroup = SETTINGS.some((setting) => setting.path.startsWith(`${path}.`));
    return isGroup && isObject(inner) ? flatten(inner, `${path}.`) : [[path, inner]];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function snakeOf(path: string): string {
  return path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replaceAll(".", "_");
}

function kebabOf(path: string): string {
  return snakeOf(path).replaceAll("_", "-");
}
