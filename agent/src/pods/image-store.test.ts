import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type PullOptions,
  type RegistryLogin,
  RuntimeError,
  type RuntimeErrorCode,
} from "../runtime/runtime.ts";
import type { ImageAccess } from "./image-access.ts";
import { ImageStore } from "./image-store.ts";

const BACK_OFF = { baseMs: 5_000, capMs: 300_000 };

test("uses a local image without network access", async () => {
  const { store, calls, settled } = aStore({ local: ["app:1"] });
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { type: "unknown" });
  store.fetch("app:1", "IfNotPresent");
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { type: "fetching", pulling: false });
  await settled();
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { type: "present" });
  assert.deepEqual(calls, ["has app:1"]);
});

test("pods that need the same image share one pull", async () => {
  const { store, calls, settled } = aStore({});
  for (let i = 0; i < 20; i += 1) store.fetch("app:1", "IfNotPresent");
  await settled();
  assert.deepEqual(calls, ["has app:1", "pull app:1"]);
});

test("queries a moving tag again for a later pod, but not for pods that start together", async () => {
  const { store, clock, calls, settled } = aStore({ local: ["app"] });
  store.fetch("app", "Always");
  await settled();
  assert.equal(store.state("app", "Always", clock.ms + 5_000).type, "present");
  assert.notEqual(store.state("app", "Always", clock.ms + 60_000).type, "present");
  assert.equal(store.state("app", "IfNotPresent", clock.ms + 60_000).type, "present");
  assert.deepEqual(calls, ["pull app"]);
});

test("does not pull a missing image if the policy is Never", async () => {
  const { store, calls, settled } = aStore({});
  store.fetch("app:1", "Never");
  await settled();
  assert.equal(store.state("app:1", "Never", 0).type, "failed");
  assert.deepEqual(calls, ["has app:1"]);
});

for (const [code, reason] of [
  ["REGISTRY_UNAVAILABLE", "ImagePullBackOff"],
  ["IMAGE_NOT_FOUND", "ErrImageNotFound"],
  ["IMAGE_DENIED", "ErrImageDenied"],
  ["IMAGE_INVALID", "ErrImageInvalid"],
  ["TIMEOUT", "ImagePullBackOff"],
] as const) {
  test(`reports ${code} as ${reason}, with the cause and the time of the next try`, async () => {
    const { store, clock, settled } = aStore({ failing: code });
    store.fetch("app:1", "IfNotPresent");
    await settled();
    const retryAtMs = clock.ms + 5_000;
    const expected = {
      type: "failed",
      reason,
      message: `failed: ${code}`,
      retryAtMs,
      notBeforeMs: retryAtMs,
    };
    assert.deepEqual(store.state("app:1", "IfNotPresent", 0), expected);
    store.fetch("app:1", "IfNotPresent");
    await settled();
    const again = store.state("app:1", "IfNotPresent", 0);
    assert.equal(again.type === "failed" && again.retryAtMs, clock.ms + 10_000);
  });
}

test("looks up an image again after another program has removed it", async () => {
  const { store, settled } = aStore({ local: ["app:1"] });
  store.seen("app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).type, "present");
  store.forget("app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).type, "unknown");
  await settled();
});

test("reports the progress of a pull at intervals", async () => {
  const { store, clock, pulls, settled, changes } = aStore({ slow: true });
  store.fetch("app:1", "IfNotPresent");
  await settled();
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { type: "fetching", pulling: true });
  const before = changes.length;
  const state = { layersDone: 1, layers: 3, bytesDone: 12 * 2 ** 20, bytesTotal: 80 * 2 ** 20 };
  for (let i = 0; i < 40; i += 1) {
    clock.ms += 100;
    pulls[0]?.onProgress?.({ ...state, bytesDone: state.bytesDone + i * 2 ** 20 });
  }
  assert.equal(changes.length - before, 2);
  const shown = store.state("app:1", "IfNotPresent", 0);
  assert.equal(shown.type === "fetching" && shown.progress, "1 of 3 layers, 51 of 80 MiB");
  pulls[0]?.end();
  await settled();
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { type: "present" });
});

test("reports the progress of several pulls together, so that a pod that waits for all of them reports once", async () => {
  const { store, clock, pulls, settled, changes } = aStore({ slow: true });
  const images = ["app:1", "side:1", "init:1"];
  for (const image of images) store.fetch(image, "IfNotPresent");
  await settled();
  const before = changes.length;
  const times = new Set<number>();
  for (let i = 1; i <= 60; i += 1) {
    clock.ms += 100;
    const before = changes.length;
    pulls[i % 3]?.onProgress?.({
      layersDone: 1,
      layers: 3,
      bytesDone: i * 2 ** 20,
      bytesTotal: 80 * 2 ** 20,
    });
    if (changes.length > before) times.add(clock.ms);
  }
  assert.deepEqual([...times], [3_000, 5_000, 7_000]);
  assert.deepEqual(changes.slice(before), [...images, ...images, ...images]);
});

const LOGIN = { server: "registry.example", username: "u", password: "p" };
const IMAGE = "registry.example/app:1";
const userOf = (namespace: string, ...registryCredentials: readonly RegistryLogin[]) => ({
  namespace,
  objects: { secrets: [], configMaps: [], envVersions: {}, registryCredentials },
});

test("uses the namespace's logins for a pull, and keeps failures apart by namespace", async () => {
  const { store, pulls, settled } = aStore({ denies: (logins) => logins[0]?.password !== "p" });
  const [good, wrong] = [userOf("a", LOGIN), userOf("b", { ...LOGIN, password: "wrong" })];
  store.fetch(IMAGE, "IfNotPresent", good);
  store.fetch(IMAGE, "IfNotPresent", wrong);
  await settled();
  assert.deepEqual(pulls.map((it) => it.credentials?.[0]?.password).sort(), ["p", "wrong"]);
  assert.equal(store.state(IMAGE, "IfNotPresent", 0, good).type, "present");
  assert.equal(store.state(IMAGE, "IfNotPresent", 0, wrong).type, "failed");
});

test("an image pulled with a credential is usable in its namespace only; others must prove access", async () => {
  const { store, calls, settled } = aStore({ denies: (logins) => logins.length === 0 });
  store.fetch(IMAGE, "IfNotPresent", userOf("a", LOGIN));
  await settled();
  calls.length = 0;
  store.fetch(IMAGE, "IfNotPresent", userOf("a"));
  await settled();
  assert.deepEqual(calls, [`has ${IMAGE}`]);
  assert.equal(store.state(IMAGE, "IfNotPresent", 0, userOf("a")).type, "present");
  for (const policy of ["IfNotPresent", "Never"] as const) {
    store.fetch(IMAGE, policy, userOf("b"));
    await settled();
    const state = store.state(IMAGE, policy, 0, userOf("b"));
    assert.equal(state.type === "failed" && state.reason, "ErrImageDenied");
  }
  store.fetch(IMAGE, "IfNotPresent", userOf("b", LOGIN));
  await settled();
  assert.equal(store.state(IMAGE, "Never", 0, userOf("b", LOGIN)).type, "present");
});

const DIGEST = `app@sha256:${"a".repeat(64)}`;

test("gets an image with a digest from another node if the registry is unreachable", async () => {
  const { store, calls, settled, pulled } = aStore({ failing: "REGISTRY_UNAVAILABLE", nodes: {} });
  store.fetch(DIGEST, "IfNotPresent", userOf("a"));
  await settled();
  assert.deepEqual(calls, [`has ${DIGEST}`, `pull ${DIGEST}`, `ask ${DIGEST} a`]);
  assert.equal(store.state(DIGEST, "IfNotPresent", 0, userOf("a")).type, "present");
  assert.equal(pulled(), 1, "the images of this host are counted again");
});

for (const [what, reference, failing] of [
  ["a tag, which may stand for something else there", "app:1", "REGISTRY_UNAVAILABLE"],
  ["an image that the registry denies", DIGEST, "IMAGE_DENIED"],
  ["an image that the registry does not know", DIGEST, "IMAGE_NOT_FOUND"],
] as const) {
  test(`gets the image from no other node: ${what}`, async () => {
    const { store, calls, settled } = aStore({ failing, nodes: {} });
    store.fetch(reference, "IfNotPresent");
    await settled();
    assert.deepEqual(calls, [`has ${reference}`, `pull ${reference}`]);
  });
}

test("gets images by tag from trusted nodes, unless the registry has to resolve the tag", async () => {
  for (const [policy, asked] of [
    ["IfNotPresent", ["ask app:1 a"]],
    ["Always", []],
  ] as const) {
    const { store, calls, settled } = aStore({ failing: "REGISTRY_UNAVAILABLE", nodes: { tags: true } });
    store.fetch("app:1", policy, userOf("a"));
    await settled();
    assert.deepEqual(
      calls.filter((call) => call.startsWith("ask")),
      asked,
    );
    const { type } = store.state("app:1", policy, 0, userOf("a"));
    assert.equal(type, policy === "Always" ? "failed" : "present");
  }
});

test("reports both errors if registry and nodes fail, and retries", async () => {
  const { store, settled } = aStore({ failing: "TIMEOUT", nodes: { problem: "no node has it" } });
  store.fetch(DIGEST, "IfNotPresent");
  await settled();
  const state = store.state(DIGEST, "IfNotPresent", 0);
  assert.equal(state.type === "failed" && state.reason, "ImagePullBackOff");
  assert.match(
    state.type === "failed" ? state.message : "",
    /failed: TIMEOUT; no other node sends it: no node has it/,
  );
});

test("prefers other nodes to the registry if configured", async () => {
  const near = aStore({ nodes: { first: true } });
  near.store.fetch(DIGEST, "IfNotPresent");
  await near.settled();
  assert.deepEqual(near.calls.slice(1), [`ask ${DIGEST} `]);
  const lacking = aStore({ nodes: { first: true, problem: "no node has it" } });
  lacking.store.fetch(DIGEST, "IfNotPresent");
  await lacking.settled();
  assert.deepEqual(lacking.calls.slice(1), [`ask ${DIGEST} `, `pull ${DIGEST}`]);
  assert.equal(lacking.store.state(DIGEST, "IfNotPresent", 0).type, "present");
  assert.deepEqual([near.pulled(), lacking.pulled()], [1, 1]);
});

test("forgets a removed image by any of its names", () => {
  const { store } = aStore({});
  store.seen("app:1");
  store.forget("docker.io/library/app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).type, "unknown");
});

interface StoreOptions {
  readonly local?: readonly string[];
  readonly failing?: RuntimeErrorCode;
  readonly denies?: (logins: readonly RegistryLogin[]) => boolean;
  /** Whether pulls end only on demand. */
  readonly slow?: boolean;
  /** Other nodes, which send the image unless `problem` is set. */
  readonly nodes?: { readonly first?: boolean; readonly tags?: boolean; readonly problem?: string };
}

function aStore({ local: before = [], failing, denies, slow = false, nodes }: StoreOptions) {
  const calls: string[] = [];
  const local = [...before];
  const changes: string[] = [];
  let pulled = 0;
  const pulls: (PullOptions & { end: () => void })[] = [];
  const clock = {
    ms: 1_000,
    nowMs: () => clock.ms,
    monotonicMs: () => clock.ms,
    schedule: () => () => undefined,
  };
  const { signal } = new AbortController();
  const store = new ImageStore({
    runtime: {
      hasImage: async (reference) => {
        calls.push(`has ${reference}`);
        return local.includes(reference);
      },
      pull: async (reference, _signal, options = {}) => {
        calls.push(`pull ${reference}`);
        await new Promise<void>((end) => {
          pulls.push({ ...options, end });
          if (!slow) end();
        });
        if (denies?.(options.credentials ?? []))
          throw new RuntimeError("IMAGE_DENIED", "denied", { retryable: false });
        if (failing) throw new RuntimeError(failing, `failed: ${failing}`, { retryable: true });
        local.push(reference);
      },
    },
    clock,
    backOff: BACK_OFF,
    signal,
    onChange: (reference) => changes.push(reference),
    onPulled: () => void pulled++,
    access: anAccess(),
    otherNodes: nodes && {
      first: nodes.first ?? false,
      tags: nodes.tags ?? false,
      fetch: async (reference, namespace) => {
        calls.push(`ask ${reference} ${namespace}`);
        if (nodes.problem !== undefined) throw new Error(nodes.problem);
      },
    },
  });
  return {
    store,
    clock,
    calls,
    changes,
    pulls,
    pulled: () => pulled,
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

function anAccess(): ImageAccess {
  const closed = new Map<string, string[]>();
  return {
    isOpenTo: (reference, namespace) => closed.get(reference)?.includes(namespace) ?? true,
    pulled: (reference, namespace, withLogin) => {
      if (withLogin) closed.set(reference, [...(closed.get(reference) ?? []), namespace]);
    },
  };
}
