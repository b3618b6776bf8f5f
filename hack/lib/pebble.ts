import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CertificateAuthority } from "@forage/identity/ca";
import { freePorts } from "./free-ports.ts";
import { SetupError } from "./setup-error.ts";
import { type Program, spawnProgram } from "./spawn-program.ts";
import { waitFor } from "./wait-for.ts";

/** An ACME authority for tests, on loopback. It loses its state when it stops. */
export interface Pebble {
  /** URL of its directory. */
  readonly directory: string;
  /** PEM file with the root of the directory's own TLS. */
  readonly caFile: string;
  /** The root of its certificates in PEM. It changes with each start. */
  readonly root: string;
  /** Sets the address at which Pebble validates the hostname. The default is 127.0.0.1. */
  resolve(hostname: string, address: string): Promise<void>;
  /** Returns the log of all its runs. */
  readLog(): string;
  /** Stops the authority. Its address is unused until it is started again. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface PebbleOptions {
  /** The port at which pebble validates its challenges. */
  readonly httpPort: number;
  /** The validity of its certificates. Default: five years. */
  readonly validitySeconds?: number;
  /** The percentage of valid nonces that pebble rejects anyway. Default: 5. */
  readonly rejectedNonces?: number;
  /** Keys of accounts by their ids, in base64url. If set, other accounts are rejected. */
  readonly externalKeys?: Readonly<Record<string, string>>;
}

const START_LIMIT_MS = 60_000;
const STOP_GRACE_MS = 1_000;

/** Starts Debian's pebble with its own name server. */
export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const dir = mkdtempSync(join(tmpdir(), "forage-pebble-"));
  const [port = 0, management = 0, dns = 0, dnsManagement = 0] = await freePorts(4);
  const caFile = await writeConfig(dir, port, management, options);
  const names = spawnNames(dir, dns, dnsManagement);
  const logPath = join(dir, "pebble.log");
  let program: Program | undefined;
  let root = "";
  const stop = async (): Promise<void> => {
    await program?.end(STOP_GRACE_MS);
    program = undefined;
  };
  const start = async (): Promise<void> => {
    const args = ["-config", join(dir, "config.json"), "-dnsserver", `127.0.0.1:${dns}`];
    program = spawnProgram("pebble", args, { logPath, env: environmentOf(options) });
    for (const listening of [port, management]) await listens(listening, program);
    root = await readRoot(management, caFile);
  };
  const close = async (): Promise<void> => {
    await Promise.all([stop(), names.end(STOP_GRACE_MS)]);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await listens(dnsManagement, names);
    await start();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    directory: `https://127.0.0.1:${port}/dir`,
    caFile,
    get root() {
      return root;
    },
    resolve: (hostname, address) => addName(dnsManagement, hostname, address),
    readLog: () => readFileSync(logPath, "utf8"),
    stop,
    start,
    close,
  };
}

function spawnNames(dir: string, dns: number, management: number): Program {
  const args = [
    ...["-dns01", `127.0.0.1:${dns}`, "-management", `127.0.0.1:${management}`, "-defaultIPv6", ""],
    // Otherwise pebble's name server would answer challenges itself.
    ...["-http01", "", "-https01", "", "-tlsalpn01", ""],
  ];
  return spawnProgram("pebble-challtestsrv", args, { logPath: join(dir, "names.log") });
}

function environmentOf({ rejectedNonces }: PebbleOptions): Record<string, string> {
  return {
    PEBBLE_VA_NOSLEEP: "1",
    ...(rejectedNonces !== undefined && { PEBBLE_WFE_NONCEREJECT: String(rejectedNonces) }),
  };
}

async function writeConfig(
  dir: string,
  port: number,
  management: number,
  { httpPort, validitySeconds, externalKeys }: PebbleOptions,
): Promise<string> {
  const authority = await CertificateAuthority.create("pebble", { nowMs: Date.now, randomBytes });
  const server = await authority.issueServer({ dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"] });
  const place = (name: string): string => join(dir, name);
  writeFileSync(place("ca.pem"), authority.certPem);
  writeFileSync(place("cert.pem"), server.chainPem);
  writeFileSync(place("key.pem"), server.keyPem, { mode: 0o600 });
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: place("cert.pem"),
    privateKey: place("key.pem"),
    httpPort,
    // Only HTTP-01 is used.
    tlsPort: 9,
    ...(validitySeconds !== undefined && { certificateValidityPeriod: validitySeconds }),
    ...(externalKeys !== undefined && {
      externalAccountBindingRequired: true,
      externalAccountMACKeys: externalKeys,
    }),
  };
  writeFileSync(place("config.json"), JSON.stringify({ pebble }), { mode: 0o600 });
  return place("ca.pem");
}

async function listens(port: number, program: Program): Promise<void> {
  const what = `pebble listens on ${port}`;
  await waitFor(() => accepts(port), { what, limitMs: START_LIMIT_MS, explain: () => program.readLog() });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const settle = (accepted: boolean) => () => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once("connect", settle(true)).once("error", settle(false));
  });
}

function readRoot(management: number, caFile: string): Promise<string> {
  const options = { ca: readFileSync(caFile) };
  return new Promise((resolve, reject) => {
    get(`https://127.0.0.1:${management}/roots/0`, options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => resolve(Buffer.concat(chunks).toString()));
    }).on("error", reject);
  });
}

async function addName(management: number, hostname: string, address: string): Promise<void> {
  const body = JSON.stringify({ host: `${hostname}.`, addresses: [address] });
  const response = await fetch(`http://127.0.0.1:${management}/add-a`, { method: "POST", body });
  if (!response.ok)
    throw new SetupError("COMMAND_FAILED", `pebble-challtestsrv: ${response.status}`, "see its log");
}
