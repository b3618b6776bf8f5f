import { createHash } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Architecture, goArchitecture } from "./architecture.ts";
import { NERDCTL_ARCHIVE_SHA256, NERDCTL_VERSION } from "./nerdctl-version.ts";
import { run } from "./run.ts";
import { SetupError } from "./setup-error.ts";

// An unreachable site is noticed quickly, but the download of 12 MB may take a while.
const CONNECT_LIMIT_MS = 4_000;
const DOWNLOAD_LIMIT_MS = 300_000;

export interface DownloadOptions {
  readonly signal?: AbortSignal;
  /** Default: this machine's. */
  readonly architecture?: Architecture;
  /** The archive to download and its digest. Default: the pinned release. */
  readonly archive?: { readonly url: string; readonly sha256: string };
}

/**
 * Downloads the release's program to `target`. Returns false if the archive can't be downloaded. Throws if its digest
 * is wrong.
 */
export async function downloadNerdctl(target: string, options: DownloadOptions): Promise<boolean> {
  const { url, sha256 } = options.archive ?? release(options.architecture ?? goArchitecture());
  const archive = await download(url, options.signal);
  if (!archive) return false;
  const actual = createHash("sha256").update(archive).digest("hex");
  if (actual !== sha256) {
    throw new SetupError(
      "DOWNLOAD_FAILED",
      `${url} has SHA-256 ${actual}, expected ${sha256}`,
      "don't use it; find out what stands between this machine and the site",
    );
  }
  await unpack(archive, target);
  return true;
}

function release(arch: Architecture): { url: string; sha256: string } {
  const name = `nerdctl-${NERDCTL_VERSION}-linux-${arch}.tar.gz`;
  return {
    url: `https://github.com/containerd/nerdctl/releases/download/v${NERDCTL_VERSION}/${name}`,
    sha256: NERDCTL_ARCHIVE_SHA256[arch],
  };
}

async function download(url: string, signal: AbortSignal | undefined): Promise<Buffer | undefined> {
  const connecting = new AbortController();
  const timer = setTimeout(() => connecting.abort(), CONNECT_LIMIT_MS);
  const signals = [connecting.signal, AbortSignal.timeout(DOWNLOAD_LIMIT_MS), ...(signal ? [signal] : [])];
  try {
    const response = await fetch(url, { signal: AbortSignal.any(signals) });
    clearTimeout(timer);
    return response.ok ? Buffer.from(await response.arrayBuffer()) : undefined;
  } catch {
    signal?.throwIfAborted();
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

async function unpack(archive: Buffer, target: string): Promise<void> {
  mkdirSync(dirname(target), { recursive: true });
  const path = join(dirname(target), `download.${process.pid}.tar.gz`);
  const dir = join(dirname(target), `unpacked.${process.pid}`);
  try {
    mkdirSync(dir);
    writeFileSync(path, archive);
    await run("tar", ["--extract", "--gzip", "--file", path, "--directory", dir, "nerdctl"]);
    renameSync(join(dir, "nerdctl"), target);
  } finally {
    rmSync(path, { force: true });
    rmSync(dir, { recursive: true, force: true });
  }
}
