import { readFileSync } from "node:fs";
import { CliError } from "../errors.ts";
import type { World } from "../world.ts";
import { readConfigFile } from "./config-file.ts";
import { checkToken, readTokenFile } from "./token.ts";

/** The address of the coordinator, its authority and the credentials. */
export interface Endpoint {
  /** `host:port`. */
  readonly server: string;
  readonly caFile: string;
  readonly caPem: string;
  readonly token: string;
  /** The origin of the token, for messages. */
  readonly tokenSource: string;
}

export interface Settings {
  /** The namespace of a flag. It must not contradict a manifest. */
  readonly flagNamespace: string | undefined;
  readonly namespace: string;
  /** Reads the files only when they are needed. */
  readonly endpoint: () => Endpoint;
}

export interface SettingFlags {
  readonly namespace: string | undefined;
  readonly config: string | undefined;
  readonly server: string | undefined;
  readonly "ca-file": string | undefined;
  readonly "token-file": string | undefined;
}

const DEFAULT_SERVER = "127.0.0.1:7600";
const DEFAULT_PORT = 7600;
const DEFAULT_NAMESPACE = "default";

/** Flags before environment before file. */
export function resolveSettings(
  flags: SettingFlags,
  { env, homeDir }: Pick<World, "env" | "homeDir">,
): Settings {
  const { path, settings } = readConfigFile(flags.config ?? given(env.FORAGE_CONFIG), homeDir);
  const caFile = flags["ca-file"] ?? given(env.FORAGE_CA_FILE) ?? settings.caFile;
  const namespace = flags.namespace ?? given(env.FORAGE_NAMESPACE) ?? settings.namespace ?? DEFAULT_NAMESPACE;
  return {
    flagNamespace: flags.namespace,
    namespace,
    endpoint: () => {
      const server = withPort(flags.server ?? given(env.FORAGE_SERVER) ?? settings.server ?? DEFAULT_SERVER);
      if (caFile === undefined) {
        const where = path === undefined ? "a configuration file" : path;
        throw new CliError(
          "CONFIG",
          `no CA file: name one with --ca-file, FORAGE_CA_FILE or caFile in ${where}`,
        );
      }
      return { server, caFile, caPem: readCa(caFile), ...findToken(flags, env, settings.tokenFile) };
    },
  };
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

function readCa(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const what = code === "ENOENT" ? "is not there" : `can't be read: ${code}`;
    throw new CliError("CONFIG", `the CA file ${path} ${what}`, { cause: error });
  }
}

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
