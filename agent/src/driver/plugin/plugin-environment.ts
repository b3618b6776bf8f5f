/** The environment that Nomad, or another host of go-plugin's protocol, passes to the program. */
export interface PluginEnvironment {
  /** Directory of the Unix socket; undefined: the system's temporary directory. */
  readonly socketDir: string | undefined;
  /** Group, by name or number, that may connect to the socket. */
  readonly socketGroup: string | undefined;
  /** Range of TCP ports, used with `--listen tcp`. */
  readonly ports: { readonly min: number; readonly max: number };
  /** The host's certificate in PEM. If set, the connection uses TLS, and only this certificate may connect. */
  readonly clientCertificate: string | undefined;
  /** Whether the host expects a field about multiplexing in the handshake. */
  readonly asksForMultiplexing: boolean;
}

/** Shows that a plugin host has started the program, and not a person. It is not a secret. */
const COOKIE_NAME = "NOMAD_PLUGIN_MAGIC_COOKIE";
const COOKIE = "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255";
/** The version of Nomad's plugin protocol that this program speaks. */
export const APP_PROTOCOL_VERSION = 2;
const DEFAULT_MIN_PORT = 10_000;
const DEFAULT_MAX_PORT = 25_000;
const PORT_LIMIT = 65_535;

type Variables = Readonly<Record<string, string | undefined>>;

/** Reads the environment. Throws an error for the operator if Nomad did not start the program. */
export function readPluginEnvironment(env: Variables): PluginEnvironment {
  if (env[COOKIE_NAME] !== COOKIE)
    throw new Error(
      "this program is a plugin that Nomad starts by itself; copy or link it into Nomad's plugin_dir and configure it there (docs/nomad.md)",
    );
  checkProtocolVersions(env.PLUGIN_PROTOCOL_VERSIONS);
  const min = readPort(env, "PLUGIN_MIN_PORT", DEFAULT_MIN_PORT);
  const max = readPort(env, "PLUGIN_MAX_PORT", Math.max(DEFAULT_MAX_PORT, min));
  if (min > max) throw new Error(`PLUGIN_MIN_PORT (${min}) is greater than PLUGIN_MAX_PORT (${max})`);
  return {
    socketDir: env.PLUGIN_UNIX_SOCKET_DIR || undefined,
    socketGroup: env.PLUGIN_UNIX_SOCKET_GROUP || undefined,
    ports: { min, max },
    clientCertificate: env.PLUGIN_CLIENT_CERT || undefined,
    asksForMultiplexing: isTrue(env.PLUGIN_MULTIPLEX_GRPC),
  };
}

function checkProtocolVersions(text: string | undefined): void {
  if (!text) return;
  const offered = text.split(",").map((part) => part.trim());
  if (!offered.includes(String(APP_PROTOCOL_VERSION)))
    throw new Error(
      `PLUGIN_PROTOCOL_VERSIONS is ${JSON.stringify(text)}, and this plugin supports version ${APP_PROTOCOL_VERSION} only`,
    );
}

function readPort(env: Variables, name: string, otherwise: number): number {
  const text = env[name];
  if (!text) return otherwise;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > PORT_LIMIT)
    throw new Error(`${name} is ${JSON.stringify(text)}; it must be a port from 1 to ${PORT_LIMIT}`);
  return port;
}

function isTrue(text: string | undefined): boolean {
  return /^(1|t|true)$/i.test(text ?? "");
}
