import assert from "node:assert/strict";
import { test } from "node:test";
import { isBlockedByBrowsers } from "./blocked-ports.ts";

test("names the ports that fetch refuses, and not their neighbours", async () => {
  const blocked = Array.from({ length: 20_000 }, (_, at) => at + 1).filter(isBlockedByBrowsers);
  assert.equal(blocked.length, 82);
  for (const port of new Set(blocked.flatMap((at) => [at - 1, at, at + 1])))
    if (port > 0) assert.equal(await isRefusedByFetch(port), isBlockedByBrowsers(port), `port ${port}`);
});

/** Requests the port of a loopback address at which nothing listens. */
async function isRefusedByFetch(port: number): Promise<boolean> {
  const error: { cause?: Error } = await fetch(`http://127.86.4.9:${port}/`, {
    signal: AbortSignal.timeout(2_000),
  }).then(
    () => ({}),
    (thrown) => thrown,
  );
  return error.cause?.message === "bad port";
}
