import { readFileSync } from "node:fs";
import { didYouMean } from "../command/suggest.ts";
import { CliError } from "../errors.ts";
import type { World } from "../world.ts";
import { type FileSettings, type FoundConfig, readConfigFile } from "./config-file.ts";
import { checkToken, readTokenFile } from "./token.ts";

/** The addresses of the cluster's coordinators, their authority and the credentials. */
export interface Endpoint {
  /** `host:port`. */
  readonly server: string;
  /** The addresses of further coordinators of the cluster, which are used when that one can't be reached. */
  readonly otherServers: readonly string[];
  readonly caFile: string;
  readonly caPem: string;
  readonly token: string;
  /** The origin of the token, for messages. */
  readonly tokenSource: string;
}

export interface Settings {
  /** The context that the settings come from; undefined without one. */
  readonly contextName: string | undefined;
  /** Names the coordinator in questions: `context "prod" (coordinator.example:7600)`. */
  readonly place: () => string;
  /** The namespace of a flag. It must not contradict a manifest. */
  readonly flagNamespace: string | undefined;
  readonly namespace: string;
  /** Whether a flag or the environment names the coordinators: no others are used then. */
  readonly hasFixedServers: boolean;
  /** Reads the files only when they are needed. */
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
/** A cluster has three coordinators, or five. */
const MAX_SERVERS = 16;
const DEFAULT_NAMESPACE = "default";

/** Flags before environment before file. */
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

/** Returns the settings of the named context, of the current one, or those outside of any context. */
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

/** Returns the error for a context that does not exist, with a similar name that does. */
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

/** Throws CONFIG if it can't be read. */
export function readCa(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const what = code === "ENOENT" ? "is not there" : `can't be read: ${code}`;
    throw new CliError("CONFIG", `the CA file ${path} ${what}`, { cause: error });
  }
}

/** Returns each `HOST:PORT` of addresses that are separated by commas. Throws CONFIG. */
export function parseServers(text: string): readonly [string, ...string[]] {
  const [first = "", ...others] = text.split(",").map((address) => address.trim());
  const servers = [withPort(first), ...others.map(withPort)] as const;
  if (servers.length > MAX_SERVERS)
    throw new CliError("CONFIG", `${servers.length} server addresses are too many: at most ${MAX_SERVERS}`);
  return servers;
}

/** Returns `HOST:PORT`. Throws CONFIG for anything that is no address. */
function withPort(server: string): string {
  const [, host, port] =
    /^(?:https:\/\/)?(\[[0-9a-fA-F:.]+\]|[^\s:/]+)(?::(\d{1,5}))?\/?$/.exec(server) ?? [];
  if (host === undefined || Number(port ?? DEFAULT_PORT) > 65_535) {
    throw new CliError(
      "CONFIG",
      `"${server}" is no server address such as coordinator.example:${DEFAULT_PORT}`,
    );
  }
  return `${host}:${port ?? DEFAULT_PORT}`;
}

/** An empty variable is as good as none. */
function given(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
