import assert from "node:assert/strict";
import { test } from "node:test";
import { RuntimeError, type RuntimeErrorCode } from "../runtime/runtime.ts";
import { ImageStore } from "./image-store.ts";

const BACK_OFF = { baseMs: 5_000, capMs: 300_000 };

test("a local image never touches the network", async () => {
  const { store, calls, settled } = aStore({ local: ["app:1"] });
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { kind: "unknown" });
  store.fetch("app:1", "IfNotPresent");
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { kind: "fetching", pulling: false });
  await settled();
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { kind: "present" });
  assert.deepEqual(calls, ["has app:1"]);
});

test("many that want one image share one pull", async () => {
  const { store, calls, settled } = aStore({});
  for (let i = 0; i < 20; i += 1) store.fetch("app:1", "IfNotPresent");
  await settled();
  assert.deepEqual(calls, ["has app:1", "pull app:1"]);
});

test("a moving tag is asked for anew by a pod that comes later, but not by its neighbours", async () => {
  const { store, clock, calls, settled } = aStore({ local: ["app"] });
  store.fetch("app", "Always");
  await settled();
  assert.equal(store.state("app", "Always", clock.ms + 5_000).kind, "present");
  assert.notEqual(store.state("app", "Always", clock.ms + 60_000).kind, "present");
  assert.equal(store.state("app", "IfNotPresent", clock.ms + 60_000).kind, "present");
  assert.deepEqual(calls, ["pull app"]);
});

test("Never: what is not here is not fetched", async () => {
  const { store, calls, settled } = aStore({});
  store.fetch("app:1", "Never");
  await settled();
  assert.equal(store.state("app:1", "Never", 0).kind, "failed");
  assert.deepEqual(calls, ["has app:1"]);
});

for (const [code, reason] of [
  ["REGISTRY_UNAVAILABLE", "ImagePullBackOff"],
  ["IMAGE_NOT_FOUND", "ErrImageNotFound"],
  ["IMAGE_DENIED", "ErrImageDenied"],
  ["IMAGE_INVALID", "ErrImageInvalid"],
  ["TIMEOUT", "ImagePullBackOff"],
] as const) {
  test(`${code} shows as ${reason}, with the cause and when it is tried again`, async () => {
    const { store, clock, settled } = aStore({ failing: code });
    store.fetch("app:1", "IfNotPresent");
    await settled();
    const retryAtMs = clock.ms + 5_000;
    const expected = { kind: "failed", reason, message: `failed: ${code}`, retryAtMs };
    assert.deepEqual(store.state("app:1", "IfNotPresent", 0), expected);
    store.fetch("app:1", "IfNotPresent");
    await settled();
    const again = store.state("app:1", "IfNotPresent", 0);
    assert.equal(again.kind === "failed" && again.retryAtMs, clock.ms + 10_000);
  });
}

test("what was removed behind our back is looked for again", async () => {
  const { store, settled } = aStore({ local: ["app:1"] });
  store.seen("app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).kind, "present");
  store.forget("app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).kind, "unknown");
  await settled();
});

function aStore({ local = [], failing }: { local?: readonly string[]; failing?: RuntimeErrorCode }) {
  const calls: string[] = [];
  const clock = {
    ms: 1_000,
    nowMs: () => clock.ms,
    monotonicMs: () => clock.ms,
    after: () => () => undefined,
  };
  const { signal } = new AbortController();
  const store = new ImageStore({
    runtime: {
      hasImage: async (reference) => {
        calls.push(`has ${reference}`);
        return local.includes(reference);
      },
      pull: async (reference) => {
        calls.push(`pull ${reference}`);
        if (failing) throw new RuntimeError(failing, `failed: ${failing}`, { retryable: true });
      },
    },
    clock,
    backOff: BACK_OFF,
    signal,
    onChange: () => undefined,
  });
  return { store, clock, calls, settled: () => new Promise((resolve) => setImmediate(resolve)) };
}
