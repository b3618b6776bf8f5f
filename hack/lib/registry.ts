import { spawn } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Descriptor } from "./oci-archive.ts";
import { endProcess, identify, type ProcessIdentity } from "./process-identity.ts";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";
import { waitFor } from "./wait-for.ts";

export interface Registry {
  /** `127.0.0.1:PORT`, the first part of its images' names. */
  readonly address: string;
  /** The directory of its blobs. */
  readonly dir: string;
  /** Uploads an OCI archive as `repository:tag` and returns the full reference and the manifest's digest. */
  pushImage(archivePath: string, repositoryAndTag: string): Promise<{ reference: string; digest: string }>;
  close(): Promise<void>;
}

export interface StartRegistryOptions {
  /** Default: a new directory, removed on close. */
  readonly dir?: string;
  /** The port. Default: any free one. Give the earlier port to restart a registry. */
  readonly port?: number;
  readonly signal?: AbortSignal;
  /** The allowed users, as lines of `htpasswd -B`. Default: no authentication. */
  readonly users?: string;
  /** Called with the process, so another process can end it if this one dies. */
  readonly onStart?: (identity: ProcessIdentity) => void;
}

/** Starts Debian's docker-registry on loopback without TLS. Passwords are required only if there are `users`. */
export async function startRegistry(options: StartRegistryOptions = {}): Promise<Registry> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "forage-registry-"));
  mkdirSync(dir, { recursive: true });
  const identity = launch(dir, options);
  options.onStart?.(identity);
  const logPath = join(dir, "log");
  const close = async (): Promise<void> => {
    await endProcess(identity, { graceMs: 1_000 });
    if (!options.dir) rmSync(dir, { recursive: true, force: true });
  };
  try {
    const address = await waitFor(
      () => /listening on (127\.0\.0\.1:\d+)/.exec(readFileSync(logPath, "utf8"))?.[1],
      {
        what: "the registry listens",
        limitMs: 15_000,
        ...(options.signal && { signal: options.signal }),
        explain: () => readFileSync(logPath, "utf8"),
      },
    );
    return { address, dir, close, pushImage: (path, name) => pushImage(address, path, name) };
  } catch (error) {
    await close();
    throw error;
  }
}

function launch(dir: string, { port = 0, users }: StartRegistryOptions): ProcessIdentity {
  const usersFile = join(dir, "users");
  if (users !== undefined) writeFileSync(usersFile, users, { mode: 0o600 });
  const config = {
    version: "0.1",
    log: { accesslog: { disabled: true }, level: "info" },
    storage: { filesystem: { rootdirectory: join(dir, "data") }, delete: { enabled: true } },
    http: { addr: `127.0.0.1:${port}`, secret: "only-for-loopback" },
    ...(users !== undefined && { auth: { htpasswd: { realm: "forage", path: usersFile } } }),
  };
  writeFileSync(join(dir, "config.yml"), JSON.stringify(config));
  const log = openSync(join(dir, "log"), "w");
  const child = spawn("docker-registry", ["serve", join(dir, "config.yml")], { stdio: ["ignore", log, log] });
  closeSync(log);
  child.on("error", () => {});
  child.unref();
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (!identity)
    throw new SetupError(
      "MISSING_TOOL",
      "docker-registry can't be started",
      "apt-get install docker-registry",
    );
  return identity;
}

async function pushImage(address: string, archivePath: string, repositoryAndTag: string) {
  const [repository = "", tag = "latest"] = repositoryAndTag.split(":");
  const base = `http://${address}/v2/${repository}`;
  const index = JSON.parse((await readEntry(archivePath, "index.json")).toString()) as {
    manifests: Descriptor[];
  };
  const [top] = index.manifests;
  if (!top)
    throw new SetupError("BAD_USAGE", `${archivePath} holds no image`, "build it with buildBusyboxImage");
  const manifest = await readBlob(archivePath, top.digest);
  const { config, layers } = JSON.parse(manifest.toString()) as { config: Descriptor; layers: Descriptor[] };
  for (const { digest } of [config, ...layers]) {
    const started = await request("POST", `${base}/blobs/uploads/`);
    const place = new URL(started.headers.get("location") ?? "", base);
    place.searchParams.set("digest", digest);
    await request("PUT", place.href, "application/octet-stream", await readBlob(archivePath, digest));
  }
  await request("PUT", `${base}/manifests/${tag}`, top.mediaType, manifest);
  return { reference: `${address}/${repository}:${tag}`, digest: top.digest };
}

async function request(method: string, url: string, contentType?: string, body?: Buffer): Promise<Response> {
  const response = await fetch(url, {
    method,
    ...(contentType && { headers: { "content-type": contentType } }),
    ...(body && { body: new Uint8Array(body) }),
  });
  if (response.ok) return response;
  throw new SetupError(
    "COMMAND_FAILED",
    `${method} ${url}: ${response.status} ${await response.text()}`,
    "see above",
  );
}

function readBlob(archivePath: string, digest: string): Promise<Buffer> {
  return readEntry(archivePath, digest.replace("sha256:", "blobs/sha256/"));
}

async function readEntry(archivePath: string, entry: string): Promise<Buffer> {
  const { stdout } = await run("tar", ["--extract", "--to-stdout", "--file", archivePath, entry], {
    encoding: "latin1",
  });
  return Buffer.from(stdout, "latin1");
}
