import { readFileSync } from "node:fs";
import { didYouMean } from "../command/suggest.ts";
import { CliError } from "../errors.ts";
import type { World } from "../world.ts";
import { type FileSettings, type FoundConfig, readConfigFile } from "./config-file.ts";
import { checkToken, readTokenFile } from "./token.ts";

/** The addresses of the cluster's coordinators, their authority and the credentials. */
export interface Endpoint {
  /** The address of a coordinator, `host:port`. */
  readonly server: string;
  /** Further coordinators, which are used if that one can't be reached. */
  readonly otherServers: readonly string[];
  readonly caFile: string;
  readonly caPem: string;
  readonly token: string;
  /** The origin of the token, for messages. */
  readonly tokenSource: string;
}

export interface Settings {
  /** The context of the settings; undefined if they are from no context. */
  readonly contextName: string | undefined;
  /** Returns the coordinator as named in questions: `context "prod" (coordinator.example:7600)`. */
  readonly place: () => string;
  /** The namespace given by a flag. It must not contradict a manifest. */
  readonly flagNamespace: string | undefined;
  readonly namespace: string;
  /** Whether a flag or a variable names the coordinators, so that no others are used. */
  readonly hasFixedServers: boolean;
  /** Returns the endpoint. Reads its files at the first call. */
  readonly endpoint: () => Endpoint;
}

export interface SettingFlags {
  readonly context: string | undefined;
  readonly namespace: string | undefined;
  readonly config: string | undefined;
  readonly server: string | undefined;
  readonly "ca-file": string | undefined;
  readonly "token-file": string | undefined;
}

const DEFAULT_SERVER = "127.0.0.1:7600";
const DEFAULT_PORT = 7600;
/** The most addresses in the settings. A cluster has three coordinators, or five. */
const MAX_SERVERS = 16;
const DEFAULT_NAMESPACE = "default";

/**
 * Resolves the settings. Flags take precedence over environment variables, and these over the file.
 */
export function resolveSettings(
  flags: SettingFlags,
  { env, homeDir }: Pick<World, "env" | "homeDir">,
): Settings {
  const config = readConfigFile(flags.config ?? given(env.FORAGE_CONFIG), homeDir);
  const { name: contextName, settings } = chosenSettings(config, flags.context ?? given(env.FORAGE_CONTEXT));
  const caFile = flags["ca-file"] ?? given(env.FORAGE_CA_FILE) ?? settings.caFile;
  const namespace = flags.namespace ?? given(env.FORAGE_NAMESPACE) ?? settings.namespace ?? DEFAULT_NAMESPACE;
  const otherServer = flags.server ?? given(env.FORAGE_SERVER);
  const servers = (): readonly [string, ...string[]] =>
    parseServers(otherServer ?? settings.server ?? DEFAULT_SERVER);
  return {
    contextName,
    place: () =>
      contextName === undefined || otherServer !== undefined
        ? `coordinator ${servers().join(", ")}`
        : `context "${contextName}" (${servers().join(", ")})`,
    flagNamespace: flags.namespace,
    hasFixedServers: otherServer !== undefined,
    namespace,
    endpoint: () => {
      if (caFile === undefined) throw noCaFile(config, contextName);
      const [server, ...otherServers] = servers();
      return {
        ...{ server, otherServers },
        caFile,
        caPem: readCa(caFile),
        ...findToken(flags, env, settings.tokenFile),
      };
    },
  };
}

/**
 * Returns the settings of the named context, or of the current one, or those outside of any
 * context.
 */
function chosenSettings(
  { path, settings, current, contexts }: FoundConfig,
  named: string | undefined,
): { readonly name: string | undefined; readonly settings: FileSettings } {
  const name = named ?? current;
  if (name === undefined) return { name, settings };
  const found = contexts.get(name);
  if (found !== undefined) return { name, settings: found };
  throw noContext(name, path, [...contexts.keys()]);
}

/** Returns the error for a context that does not exist, with a similar name if there is one. */
export function noContext(name: string, path: string | undefined, others: readonly string[]): CliError {
  const where = path === undefined ? "" : ` in ${path}`;
  const hint = didYouMean(name, others) || "; `forage context ls` lists them";
  return new CliError("CONFIG", `there is no context "${name}"${where}${hint}`);
}

function noCaFile({ path }: FoundConfig, contextName: string | undefined): CliError {
  const file = path ?? "a configuration file";
  const where = contextName === undefined ? file : `contexts.${contextName} of ${file}`;
  return new CliError("CONFIG", `no CA file: name one with --ca-file, FORAGE_CA_FILE or caFile in ${where}`);
}

function findToken(
  flags: SettingFlags,
  env: World["env"],
  fromConfig: string | undefined,
): Pick<Endpoint, "token" | "tokenSource"> {
  const direct = given(env.FORAGE_TOKEN);
  if (flags["token-file"] === undefined && direct !== undefined) {
    return { token: checkToken(direct, "FORAGE_TOKEN"), tokenSource: "FORAGE_TOKEN" };
  }
  const path = flags["token-file"] ?? given(env.FORAGE_TOKEN_FILE) ?? fromConfig;
  if (path === undefined) {
    throw new CliError(
      "CONFIG",
      "no token: name a file with --token-file, FORAGE_TOKEN_FILE or tokenFile in a configuration file, or set FORAGE_TOKEN",
    );
  }
  return { token: readTokenFile(path), tokenSource: path };
}

/** Reads a CA file. Throws CONFIG. */
export function readCa(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const what = code === "ENOENT" ? "does not exist" : `can't be read: ${code}`;
    throw new CliError("CONFIG", `the CA file ${path} ${what}`, { cause: error });
  }
}

/** Parses addresses that are separated by commas. Returns each as `HOST:PORT`. Throws CONFIG. */
export function parseServers(text: string): readonly [string, ...string[]] {
  const [first = "", ...others] = text.split(",").map((address) => address.trim());
  const servers = [withPort(first), ...others.map(withPort)] as const;
  if (servers.length > MAX_SERVERS)
    throw new CliError("CONFIG", `${servers.length} server addresses are too many: at most ${MAX_SERVERS}`);
  return servers;
}

/** Parses an address, and returns it as `HOST:PORT`. Throws CONFIG. */
function withPort(server: string): string {
  const [, host, port] =
    /^(?:https:\/\/)?(\[[0-9a-fA-F:.]+\]|[^\s:/]+)(?::(\d{1,5}))?\/?$/.exec(server) ?? [];
  if (host === undefined || Number(port ?? DEFAULT_PORT) > 65_535) {
    throw new CliError(
      "CONFIG",
      `"${server}" is not a server address such as coordinator.example:${DEFAULT_PORT}`,
    );
  }
  return `${host}:${port ?? DEFAULT_PORT}`;
}

/** Returns the value of a variable; undefined if it is empty. */
function given(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
