import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { isBlockedByBrowsers } from "../../common/src/blocked-ports.ts";
import { messageOf } from "../../common/src/message-of.ts";
import { SetupError } from "../lib/setup-error.ts";

/** The given flags. Undefined ones keep their last value, or have their default. */
export interface UpFlags {
  readonly dataDir: string;
  readonly grpc?: string;
  readonly http?: string;
  readonly destination?: string;
  /** Path of a containerd's socket. */
  readonly containerd?: string;
  /** The place of the coordinator's records. */
  readonly store?: "disk" | "etcd";
  readonly example: boolean;
  /** Whether workspaces are served from now on. An instance that serves them continues without the flag. */
  readonly workspaces: boolean;
  readonly json: boolean;
}

export const DEFAULT_DATA_DIR = "/var/lib/forage-dev";

/** Parses the flags of hack/up. `startDir` is the base of relative paths. */
export function parseUpFlags(argv: readonly string[], startDir: string): UpFlags {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const options = {
    data: text,
    grpc: text,
    http: text,
    destination: text,
    containerd: text,
    store: text,
    "no-example": flag,
    workspaces: flag,
    json: flag,
  };
  const values = refuseUnknown(() => parseArgs({ args: [...argv], options }).values, "sudo hack/up --help");
  const { grpc, http, destination, containerd } = values;
  for (const [name, address] of Object.entries({ grpc, http, destination })) {
    if (address !== undefined) parseAddress(address, `--${name}`);
  }
  if (http !== undefined) refuseBlockedPort(http);
  return {
    dataDir: dataDir(values.data, startDir),
    ...(grpc !== undefined && { grpc }),
    ...(http !== undefined && { http }),
    ...(destination !== undefined && { destination }),
    ...(values.store !== undefined && { store: engineOf(values.store) }),
    ...(containerd !== undefined && { containerd: resolve(startDir, containerd) }),
    example: !values["no-example"],
    workspaces: values.workspaces ?? false,
    json: values.json ?? false,
  };
}

function engineOf(word: string): "disk" | "etcd" {
  if (word === "disk" || word === "etcd") return word;
  throw new SetupError("BAD_USAGE", `--store ${word} is neither disk nor etcd`, "for example --store etcd");
}

export function parseDownFlags(argv: readonly string[], startDir: string): { readonly dataDir: string } {
  const parse = () => parseArgs({ args: [...argv], options: { data: { type: "string" } } }).values;
  return { dataDir: dataDir(refuseUnknown(parse, "sudo hack/down --help").data, startDir) };
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Parses `127.0.0.1:7600`, `host:7600` or `[::1]:7600`. */
export function parseAddress(text: string, name: string): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port < 1 || port > 65535) {
    throw new SetupError(
      "BAD_USAGE",
      `${name} ${text} is not HOST:PORT`,
      `for example ${name} 127.0.0.1:7610`,
    );
  }
  return { host: match[1] ?? match[2] ?? "", port };
}

function refuseBlockedPort(http: string): void {
  const { port } = parseAddress(http, "--http");
  if (!isBlockedByBrowsers(port)) return;
  throw new SetupError(
    "BAD_USAGE",
    `--http ${http} has a port that browsers refuse to open`,
    "choose another one, for example --http 127.0.0.1:7611",
  );
}

function dataDir(value: string | undefined, startDir: string): string {
  const dir = resolve(startDir, value ?? DEFAULT_DATA_DIR);
  if (value === "" || dir === "/")
    throw new SetupError("BAD_USAGE", "--data needs a directory", "for example --data /var/lib/forage-two");
  return dir;
}

function refuseUnknown<T>(parse: () => T, help: string): T {
  try {
    return parse();
  } catch (error) {
    throw new SetupError("BAD_USAGE", messageOf(error), help, {
      cause: error,
    });
  }
}
