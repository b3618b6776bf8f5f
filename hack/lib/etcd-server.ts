import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "./free-ports.ts";
import { ensureGoProgram } from "./go-program.ts";
import type { BuildOptions } from "./go-toolchain.ts";
import { type Program, spawnProgram } from "./spawn-program.ts";
import { waitFor } from "./wait-for.ts";

const sources = join(import.meta.dirname, "..", "etcd");
const START_LIMIT_MS = 60_000;
const STOP_GRACE_MS = 2_000;

export interface EtcdServerOptions {
  /** PEM files for the port for clients. Default: plain text. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa: string };
  /** The data directory. Default: a temporary one, which `close` removes. */
  readonly dataDir?: string;
}

/** A member of etcd on loopback. By default it is the only one of its cluster. */
export interface EtcdServer {
  /** The URL for clients. */
  readonly endpoint: string;
  /** Restarts the member after it was killed, and waits until it answers. */
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Pauses the member's process (SIGSTOP). */
  pause(): void;
  resume(): void;
  readLog(): string;
  close(): Promise<void>;
}

/** Returns the path of etcd. The first call on a machine compiles it. */
export function ensureEtcd(options: BuildOptions = { report: console.error }): Promise<string> {
  return ensureGoProgram(sources, "etcd", options);
}

export async function startEtcd(options: EtcdServerOptions = {}): Promise<EtcdServer> {
  const [member] = await startMembers(1, options);
  if (member === undefined) throw new Error("no member of etcd was started");
  return member;
}

/** Starts a cluster of `size` members on loopback, in plain text. The caller must close each. */
export function startEtcdCluster(size: number): Promise<readonly EtcdServer[]> {
  return startMembers(size, {});
}

async function startMembers(size: number, options: EtcdServerOptions): Promise<EtcdServer[]> {
  const file = await ensureEtcd();
  const ports = await freePorts(2 * size);
  const scheme = options.tls === undefined ? "http" : "https";
  const urls = Array.from({ length: size }, (_, i) => ({
    name: `member-${i}`,
    client: `${scheme}://127.0.0.1:${ports[2 * i]}`,
    peer: `http://127.0.0.1:${ports[2 * i + 1]}`,
  }));
  const cluster = urls.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const members = urls.map((own) => makeMember(file, { ...own, cluster }, options));
  try {
    // A member serves once a majority of the cluster runs.
    await Promise.all(members.map((member) => member.start()));
  } catch (error) {
    await Promise.all(members.map((member) => member.close()));
    throw error;
  }
  return members;
}

function makeMember(
  file: string,
  urls: Omit<EtcdArguments, "dataDir" | "tls">,
  { tls, dataDir }: EtcdServerOptions,
): EtcdServer {
  const dir = mkdtempSync(join(tmpdir(), "forage-etcd-"));
  const ownDataDir = dataDir ?? join(dir, "data");
  mkdirSync(ownDataDir, { recursive: true, mode: 0o700 });
  const args = etcdArguments({ ...urls, dataDir: ownDataDir, ...(tls && { tls }) });
  const logPath = join(dir, "etcd.log");
  let program: Program | undefined;
  let starts = 0;
  return {
    endpoint: urls.client,
    start: async () => {
      const started = spawnProgram(file, args, { logPath });
      program = started;
      starts++;
      await waitFor(() => readyLines(started.readLog()) === starts, {
        what: `etcd serves ${urls.client}`,
        limitMs: START_LIMIT_MS,
        explain: () => started.readLog().slice(-2_000),
      });
    },
    kill: async () => {
      program?.kill("SIGKILL");
      await program?.exited;
    },
    pause: () => program?.kill("SIGSTOP"),
    resume: () => program?.kill("SIGCONT"),
    readLog: () => program?.readLog() ?? "",
    close: async () => {
      program?.kill("SIGCONT");
      await program?.end(STOP_GRACE_MS);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export interface EtcdArguments {
  readonly name: string;
  readonly dataDir: string;
  /** URLs. */
  readonly client: string;
  readonly peer: string;
  /** NAME=PEER of each member, separated by commas. Default: this member only. */
  readonly cluster?: string;
  readonly tls?: EtcdServerOptions["tls"];
}

/** Returns the command line of a member. */
export function etcdArguments({
  name,
  dataDir,
  client,
  peer,
  cluster = `${name}=${peer}`,
  tls,
}: EtcdArguments): readonly string[] {
  return [
    `--name=${name}`,
    `--data-dir=${dataDir}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${cluster}`,
    "--log-level=info",
    ...(tls === undefined
      ? []
      : [
          `--cert-file=${tls.cert}`,
          `--key-file=${tls.key}`,
          `--trusted-ca-file=${tls.clientCa}`,
          "--client-cert-auth",
        ]),
  ];
}

function readyLines(log: string): number {
  return log.split("ready to serve client requests").length - 1;
}
