import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { CertificateAuthority } from "@forage/identity/ca";
import {
  type ListPodsRequest,
  type ListPodsResponse,
  OperatorServiceService,
} from "@forage/proto/forage/operator/v1/operator";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";

/** A trial run takes a second. */
const RUN_LIMIT_MS = 60_000;

/**
 * Runs `forage get pods` at `BASE.cjs` once, against a server without pods, and writes the code compiled for it to
 * `BASE.cache`.
 */
export async function compileForage(base: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "forage-compile-"));
  const server = new Server();
  try {
    const authority = await CertificateAuthority.create("compile", { nowMs: Date.now, randomBytes });
    const port = await listen(server, authority);
    writeFileSync(join(dir, "ca.crt"), authority.certPem);
    writeFileSync(join(dir, "token"), `flt_${"0".repeat(12)}_${"a".repeat(43)}`, { mode: 0o600 });
    const config = join(dir, "cli.yaml");
    writeFileSync(config, `server: 127.0.0.1:${port}\ncaFile: ca.crt\ntokenFile: token\n`);
    await writeCodeCache(base, ["get", "pods", "--config", config]);
  } finally {
    server.forceShutdown();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Runs the program and writes the code that was compiled for it. */
export async function writeCodeCache(base: string, argv: readonly string[]): Promise<void> {
  const writer = join(import.meta.dirname, "write-code-cache.ts");
  await promisify(execFile)(process.execPath, [writer, base, ...argv], { timeout: RUN_LIMIT_MS });
}

async function listen(server: Server, authority: CertificateAuthority): Promise<number> {
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: [], ipAddresses: ["127.0.0.1"] });
  const pair = { cert_chain: Buffer.from(chainPem), private_key: Buffer.from(keyPem) };
  const { listPods } = OperatorServiceService;
  const answer = (
    _: ServerUnaryCall<ListPodsRequest, ListPodsResponse>,
    done: sendUnaryData<ListPodsResponse>,
  ): void => done(null, { kept: [], pods: [] });
  server.addService({ listPods }, { listPods: answer });
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createSsl(null, [pair]), (error, port) =>
      error ? reject(error) : resolve(port),
    );
  });
}
