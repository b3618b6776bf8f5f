import { RuntimeError } from "../runtime.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

// A call removes its containers one after the other, 60 ms each; two calls keep two cores busy.
const PARALLEL_CALLS = 2;
const IDS_PER_CALL_MIN = 3;
// Bounds the arguments and the duration of one call.
const IDS_PER_CALL_MAX = 50;
const TIME_PER_ID_MS = 2_000;
const TIME_MS = 60_000;
// containerd reports this status for a moment while the shim ends a process of the container. A call takes about 60 ms.
const PASSING_STATUS = "unknown container status unknown";
const ATTEMPTS = 10;

/**
 * Removes containers, running or not, with `nerdctl rm --force`. The command exits with 0 even if it could not remove a container, so
 * its output decides. Ids of no container count as removed. Throws a retryable RuntimeError if any container is left.
 */
export async function removeContainers(
  cli: Pick<NerdctlCli, "call">,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const size = Math.min(IDS_PER_CALL_MAX, Math.max(IDS_PER_CALL_MIN, Math.ceil(ids.length / PARALLEL_CALLS)));
  const batches = Array.from({ length: Math.ceil(ids.length / size) }, (_, i) =>
    ids.slice(i * size, (i + 1) * size),
  );
  const results = await Promise.allSettled(batches.map((batch) => removeBatch(cli, batch, signal)));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

async function removeBatch(
  cli: Pick<NerdctlCli, "call">,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  let left = ids;
  let why = "";
  for (let attempt = 0; attempt < ATTEMPTS && left.length > 0; attempt++) {
    if (attempt > 0 && !why.includes(PASSING_STATUS)) break;
    const timeoutMs = TIME_MS + left.length * TIME_PER_ID_MS;
    const { stdout, stderr } = await cli.call(["rm", "--force", "--", ...left], { signal, timeoutMs });
    const removed = new Set(stdout.split("\n"));
    left = left.filter((id) => !removed.has(id) && !stderr.includes(`no such container: ${id}`));
    why = stderr.trim();
  }
  if (left.length === 0) return;
  const reason = why.split("\n").slice(-3).join("; ").slice(0, 1_000);
  const message = `${left.length} of ${ids.length} containers were not removed: ${reason}`;
  throw new RuntimeError("UNKNOWN", message, { retryable: true });
}
