import { existsSync } from "node:fs";
import { run } from "../lib/run.ts";
import { SetupError } from "../lib/setup-error.ts";

export const HOST_CONTAINERD = "/run/containerd/containerd.sock";

// Older versions lack features that nerdctl 2 needs.
const OLDEST = [1, 6] as const;
// A containerd that doesn't answer within this time counts as missing.
const ANSWER_LIMIT_MS = 5_000;

/** Returns the socket of the host's containerd, if one runs and is new enough. */
export async function findHostContainerd(): Promise<string | undefined> {
  const version = await askVersion(HOST_CONTAINERD);
  return version !== undefined && isRecent(version) ? HOST_CONTAINERD : undefined;
}

/** Throws unless a usable containerd answers on the socket. */
export async function assertContainerd(socket: string): Promise<void> {
  const version = await askVersion(socket);
  if (version === undefined) {
    throw new SetupError(
      "NOT_READY",
      `no containerd answers on ${socket}`,
      "start it, or leave --containerd out",
    );
  }
  if (!isRecent(version)) {
    throw new SetupError(
      "MISSING_TOOL",
      `containerd ${version} on ${socket} is too old`,
      `use ${OLDEST.join(".")} or newer`,
    );
  }
}

async function askVersion(socket: string): Promise<string | undefined> {
  if (!existsSync(socket)) return undefined;
  const { stdout, exitCode } = await run("ctr", ["--address", socket, "--timeout", "4s", "version"], {
    allowFailure: true,
    timeoutMs: ANSWER_LIMIT_MS,
  }).catch(() => ({ stdout: "", exitCode: 1 }));
  if (exitCode !== 0) return undefined;
  // The client's version precedes the server's.
  return /^Server:[\s\S]*?Version:\s*v?(\S+)/m.exec(stdout)?.[1];
}

function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split(/[.~+-]/).map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
