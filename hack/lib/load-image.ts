import { run } from "./run.ts";

export interface LoadImageOptions {
  /** containerd's socket. */
  readonly address: string;
  readonly namespace: string;
  readonly archivePath: string;
  readonly signal?: AbortSignal;
}

/**
 * Loads an OCI archive and unpacks it with containerd's own `ctr`. `nerdctl load` of 2.3 requires a service that
 * containerd 1.6 (Debian 12) lacks.
 */
export async function loadImage({
  address,
  namespace,
  archivePath,
  signal,
}: LoadImageOptions): Promise<void> {
  const args = ["--address", address, "--namespace", namespace, "images", "import", archivePath];
  await run("ctr", args, signal ? { signal } : {});
}
