import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { findProcesses } from "../../hack/lib/process-identity.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { rejectsWith } from "./runtime-contract.ts";
import { type StubRegistry, startStubRegistry } from "./stub-registry.ts";

const STALL_MS = 1_500;

let it: NerdctlUnderTest;
let registry: StubRegistry;
before(async () => {
  it = await openNerdctl({ pullStallMs: STALL_MS });
  registry = await startStubRegistry({ type: "silent" });
});
after(async () => {
  await registry?.close();
  await it?.close();
});

const image = (name: string) => `${registry.address}/forage/${name}:1`;
const pulling = () =>
  findProcesses((argv) => argv.includes("pull") && argv.some((word) => word.startsWith(registry.address)));

for (const [status, code] of [
  [401, "IMAGE_DENIED"],
  [403, "IMAGE_DENIED"],
  [404, "IMAGE_NOT_FOUND"],
  [429, "REGISTRY_UNAVAILABLE"],
  [500, "REGISTRY_UNAVAILABLE"],
] as const) {
  test(`a registry that responds with ${status} gives ${code}`, async ({ signal }) => {
    registry.mood = { type: "status", status };
    await rejectsWith(code, it.runtime.pull(image("status"), signal));
  });
}

test("reports a registry that is down", async ({ signal }) => {
  const gone = await startStubRegistry({ type: "silent" });
  await gone.close();
  await rejectsWith("REGISTRY_UNAVAILABLE", it.runtime.pull(`${gone.address}/a:1`, signal));
});

test("a pull without progress is cancelled after the stall limit, and its nerdctl ends", async ({
  signal,
}) => {
  registry.mood = { type: "silent" };
  const begun = performance.now();
  await rejectsWith("TIMEOUT", it.runtime.pull(image("silent"), signal));
  assert.ok(performance.now() - begun >= STALL_MS);
  assert.deepEqual(pulling(), []);
});

test("a slow, steady pull continues; a pull that stalls is cancelled", async ({ signal }) => {
  let pieces = 0;
  registry.mood = {
    type: "drip",
    next: async () => {
      pieces += 1;
      // Each piece arrives well within the limit, all of them together take far longer.
      await (pieces < 12 ? delay(STALL_MS / 3) : new Promise(() => {}));
    },
  };
  const begun = performance.now();
  await rejectsWith("TIMEOUT", it.runtime.pull(image("drip"), signal));
  assert.ok(performance.now() - begun > STALL_MS * 3, `gave up after ${pieces} pieces`);
  assert.equal(await it.runtime.hasImage(image("drip"), signal), false);
});

test("callers share one pull, which ends when the last caller cancels", async ({ signal }) => {
  registry.mood = { type: "silent" };
  const before = registry.requests.length;
  const callers = [new AbortController(), new AbortController(), new AbortController()];
  const pulls = callers.map((caller) =>
    it.runtime.pull(image("shared"), AbortSignal.any([signal, caller.signal])),
  );
  const failures = pulls.map((pull) => rejectsWith("ABORTED", pull));
  await waitFor(() => registry.requests.length > before, { what: "it asks the registry", limitMs: 90_000 });
  assert.equal(pulling().length, 1);
  callers[0]?.abort();
  callers[1]?.abort();
  await Promise.all(failures.slice(0, 2));
  assert.equal(pulling().length, 1);
  callers[2]?.abort();
  await failures[2];
  await waitFor(() => pulling().length === 0, { what: "its nerdctl is gone", limitMs: 90_000 });
  assert.equal(registry.requests.length, before + 1);
});

test("rejects an image of another platform with the reason", async ({ signal }) => {
  const real = await it.host.startRegistry();
  const reference = await it.publish(real, "forage/good:1");
  await it.runtime.pull(reference, signal);
  const manifestUrl = `http://${real.address}/v2/forage/good/manifests/1`;
  const accept = "application/vnd.oci.image.manifest.v1+json";
  const manifest = await (await fetch(manifestUrl, { headers: { accept } })).text();
  const { createHash } = await import("node:crypto");
  const digest = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;
  const platform = { architecture: "s390x", os: "linux" };
  const index = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [{ mediaType: accept, digest, size: manifest.length, platform }],
  };
  await fetch(`http://${real.address}/v2/forage/good/manifests/foreign`, {
    method: "PUT",
    headers: { "content-type": index.mediaType },
    body: JSON.stringify(index),
  });
  const foreign = `${real.address}/forage/good:foreign`;
  await rejectsWith("IMAGE_INVALID", it.runtime.pull(foreign, signal));
  assert.equal(await it.runtime.hasImage(foreign, signal), false);
});
