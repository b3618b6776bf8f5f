import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CertificateAuthority } from "@forage/identity/ca";
import { SetupError } from "./setup-error.ts";
import { type Program, spawnProgram } from "./spawn-program.ts";
import { waitFor } from "./wait-for.ts";

/** An authority that speaks ACME, for tests, on loopback. It forgets everything when it ends. */
export interface Pebble {
  /** URL of its directory. */
  readonly directory: string;
  /** PEM file with the root of the directory's own TLS. */
  readonly caFile: string;
  readonly port: number;
  /** The root that its certificates lead to, PEM; another one after each start. */
  readonly root: string;
  /** Where it looks for the hostname when it validates; 127.0.0.1 for all that nobody spoke of. */
  resolve(hostname: string, address: string): Promise<void>;
  readLog(): string;
  close(): Promise<void>;
}

export interface PebbleOptions {
  /** Where it finds the answers to its challenges. */
  readonly httpPort: number;
  /** An earlier one's port, to bring it back. Default: any that is free. */
  readonly port?: number;
  /** Of the certificates that it gives. Default: five years. */
  readonly validitySeconds?: number;
  /** How many of a hundred good nonces it refuses all the same. Default: 5. */
  readonly rejectedNonces?: number;
  /** Keys of accounts that it knows beforehand, base64url by their ids; with them it takes no others. */
  readonly externalKeys?: Readonly<Record<string, string>>;
}

const startLimitMs = 60_000;

/** Starts Debian's pebble with a name server of its own. */
export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const dir = mkdtempSync(join(tmpdir(), "forage-pebble-"));
  const programs: Program[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(programs.map((program) => program.end(1_000)));
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const [free = 0, management = 0, dns = 0, dnsManagement = 0] = await freePorts(4);
    const port = options.port ?? free;
    const caFile = await writeConfig(dir, port, management, options);
    const names = `127.0.0.1:${dns}`;
    programs.push(
      spawnProgram(
        "pebble-challtestsrv",
        // Empty: none of its own answers to challenges.
        [
          ...["-dns01", names, "-http01", "", "-https01", "", "-tlsalpn01", ""],
          ...["-management", `127.0.0.1:${dnsManagement}`, "-defaultIPv6", ""],
        ],
        { logPath: join(dir, "names.log") },
      ),
    );
    const environment = {
      PEBBLE_VA_NOSLEEP: "1",
      ...(options.rejectedNonces !== undefined && { PEBBLE_WFE_NONCEREJECT: String(options.rejectedNonces) }),
    };
    const args = ["-config", join(dir, "config.json"), "-dnsserver", names];
    const pebble = spawnProgram("pebble", args, { logPath: join(dir, "pebble.log"), env: environment });
    programs.push(pebble);
    for (const listening of [port, management, dnsManagement]) await listens(listening, programs);
    const root = await readRoot(management, caFile);
    return {
      directory: `https://127.0.0.1:${port}/dir`,
      caFile,
      port,
      root,
      resolve: (hostname, address) => tellNames(dnsManagement, hostname, address),
      readLog: () => pebble.readLog(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
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
    // HTTP-01 alone is used.
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

/** Ports that nobody listens on at the moment. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = servers.map(
    (server) =>
      new Promise<number>((resolve, reject) => {
        server.once("error", reject);
        server.listen(0, "127.0.0.1", () => {
          const address = server.address();
          resolve(typeof address === "object" && address !== null ? address.port : 0);
        });
      }),
  );
  const found = await Promise.all(ports);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return found;
}

async function listens(port: number, programs: readonly Program[]): Promise<void> {
  const explain = (): string => programs.map((program) => program.readLog()).join("\n");
  await waitFor(() => accepts(port), { what: `pebble listens on ${port}`, limitMs: startLimitMs, explain });
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

async function tellNames(management: number, hostname: string, address: string): Promise<void> {
  const body = JSON.stringify({ host: `${hostname}.`, addresses: [address] });
  const response = await fetch(`http://127.0.0.1:${management}/add-a`, { method: "POST", body });
  if (!response.ok)
    throw new SetupError("COMMAND_FAILED", `pebble-challtestsrv: ${response.status}`, "see its log");
}
