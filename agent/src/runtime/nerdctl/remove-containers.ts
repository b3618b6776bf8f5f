import { RuntimeError } from "../runtime.ts";
import type { NerdctlCli } from "./nerdctl-cli.ts";

// A call removes one container after the other, 60 ms each; two calls keep two cores busy.
const PARALLEL_CALLS = 2;
const IDS_PER_CALL_MIN = 3;
// So that one call's arguments and time stay bounded.
const IDS_PER_CALL_MAX = 50;
const TIME_PER_ID_MS = 2_000;
const TIME_MS = 60_000;

/** `rm -f`, which exits with 0 whatever happened: what it says of each id counts. */
export async function removeContainers(
  cli: NerdctlCli,
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

async function removeBatch(cli: NerdctlCli, ids: readonly string[], signal: AbortSignal): Promise<void> {
  const timeoutMs = TIME_MS + ids.length * TIME_PER_ID_MS;
  const { stdout, stderr } = await cli.call(["rm", "--force", "--", ...ids], { signal, timeoutMs });
  const removed = new Set(stdout.split("\n"));
  const left = ids.filter((id) => !removed.has(id) && !stderr.includes(`no such container: ${id}`));
  if (left.length === 0) return;
  const why = stderr.trim().split("\n").slice(-3).join("; ").slice(0, 1_000);
  throw new RuntimeError("UNKNOWN", `${left.length} of ${ids.length} containers were not removed: ${why}`, {
    retryable: true,
  });
}
