import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureGoProgram } from "./go-program.ts";
import { spawnProgram } from "./spawn-program.ts";
import { waitFor } from "./wait-for.ts";

/** An S3 server for tests, on loopback, with its data in a temporary directory. */
export interface S3Server {
  readonly endpoint: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** A bucket that exists. */
  readonly bucket: string;
  close(): Promise<void>;
}

const sources = join(import.meta.dirname, "..", "s3");
const START_LIMIT_MS = 30_000;
const STOP_GRACE_MS = 1_000;

/** Starts versitygw, an S3 gateway to a directory. The first start of a machine compiles it. */
export async function startS3Server(): Promise<S3Server> {
  const file = await ensureGoProgram(sources, "versitygw", { report: console.error });
  const dir = mkdtempSync(join(tmpdir(), "forage-s3-"));
  const bucket = "archives";
  mkdirSync(join(dir, "data", bucket), { recursive: true });
  mkdirSync(join(dir, "metadata"));
  const credentials = {
    accessKeyId: "tester",
    secretAccessKey: randomBytes(20).toString("hex"),
  };
  const port = await freePort();
  const program = spawnProgram(file, [`127.0.0.1:${port}`, join(dir, "data"), join(dir, "metadata")], {
    logPath: join(dir, "server.log"),
    env: { ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey },
  });
  const close = async (): Promise<void> => {
    await program.end(STOP_GRACE_MS);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const what = `the S3 server listens on ${port}`;
    await waitFor(() => accepts(port), { what, limitMs: START_LIMIT_MS, explain: () => program.readLog() });
  } catch (error) {
    await close();
    throw error;
  }
  return { endpoint: `http://127.0.0.1:${port}`, credentials, bucket, close };
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
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
