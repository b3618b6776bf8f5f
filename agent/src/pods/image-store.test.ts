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

test("a moving tag is queried again for a later pod, but not for its neighbours", async () => {
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
    const expected = {
      kind: "failed",
      reason,
      message: `failed: ${code}`,
      retryAtMs,
      notBeforeMs: retryAtMs,
    };
    assert.deepEqual(store.state("app:1", "IfNotPresent", 0), expected);
    store.fetch("app:1", "IfNotPresent");
    await settled();
    const again = store.state("app:1", "IfNotPresent", 0);
    assert.equal(again.kind === "failed" && again.retryAtMs, clock.ms + 10_000);
  });
}

test("looks again for an image that another program has removed", async () => {
  const { store, settled } = aStore({ local: ["app:1"] });
  store.seen("app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).kind, "present");
  store.forget("app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).kind, "unknown");
  await settled();
});

test("how far a pull is shows now and then", async () => {
  const { store, clock, pulls, settled, changes } = aStore({ slow: true });
  store.fetch("app:1", "IfNotPresent");
  await settled();
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { kind: "fetching", pulling: true });
  const before = changes.length;
  const state = { layersDone: 1, layers: 3, bytesDone: 12 * 2 ** 20, bytesTotal: 80 * 2 ** 20 };
  for (let i = 0; i < 40; i += 1) {
    clock.ms += 100;
    pulls[0]?.onProgress?.({ ...state, bytesDone: state.bytesDone + i * 2 ** 20 });
  }
  assert.equal(changes.length - before, 2);
  const shown = store.state("app:1", "IfNotPresent", 0);
  assert.equal(shown.kind === "fetching" && shown.progress, "1 of 3 layers, 51 of 80 MiB");
  pulls[0]?.end();
  await settled();
  assert.deepEqual(store.state("app:1", "IfNotPresent", 0), { kind: "present" });
});

test("the progress of several pulls is reported together, so that a pod that waits for all of them reports once", async () => {
  const { store, clock, pulls, settled, changes } = aStore({ slow: true });
  const images = ["app:1", "side:1", "init:1"];
  for (const image of images) store.fetch(image, "IfNotPresent");
  await settled();
  const before = changes.length;
  const times = new Set<number>();
  for (let i = 1; i <= 60; i += 1) {
    clock.ms += 100;
    const told = changes.length;
    pulls[i % 3]?.onProgress?.({
      layersDone: 1,
      layers: 3,
      bytesDone: i * 2 ** 20,
      bytesTotal: 80 * 2 ** 20,
    });
    if (changes.length > told) times.add(clock.ms);
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

test("logins go with the pull, and another namespace's failure is its own", async () => {
  const { store, pulls, settled } = aStore({ denies: (logins) => logins[0]?.password !== "p" });
  const [good, wrong] = [userOf("a", LOGIN), userOf("b", { ...LOGIN, password: "wrong" })];
  store.fetch(IMAGE, "IfNotPresent", good);
  store.fetch(IMAGE, "IfNotPresent", wrong);
  await settled();
  assert.deepEqual(pulls.map((it) => it.credentials?.[0]?.password).sort(), ["p", "wrong"]);
  assert.equal(store.state(IMAGE, "IfNotPresent", 0, good).kind, "present");
  assert.equal(store.state(IMAGE, "IfNotPresent", 0, wrong).kind, "failed");
});

test("an image that was pulled with a credential is for its namespace only: others must prove access", async () => {
  const { store, calls, settled } = aStore({ denies: (logins) => logins.length === 0 });
  store.fetch(IMAGE, "IfNotPresent", userOf("a", LOGIN));
  await settled();
  calls.length = 0;
  store.fetch(IMAGE, "IfNotPresent", userOf("a"));
  await settled();
  assert.deepEqual(calls, [`has ${IMAGE}`]);
  assert.equal(store.state(IMAGE, "IfNotPresent", 0, userOf("a")).kind, "present");
  for (const policy of ["IfNotPresent", "Never"] as const) {
    store.fetch(IMAGE, policy, userOf("b"));
    await settled();
    const state = store.state(IMAGE, policy, 0, userOf("b"));
    assert.equal(state.kind === "failed" && state.reason, "ErrImageDenied");
  }
  store.fetch(IMAGE, "IfNotPresent", userOf("b", LOGIN));
  await settled();
  assert.equal(store.state(IMAGE, "Never", 0, userOf("b", LOGIN)).kind, "present");
});

const DIGEST = `app@sha256:${"a".repeat(64)}`;

test("an image with a digest comes from another node if the registry can't be reached", async () => {
  const { store, calls, settled } = aStore({ failing: "REGISTRY_UNAVAILABLE", nodes: {} });
  store.fetch(DIGEST, "IfNotPresent", userOf("a"));
  await settled();
  assert.deepEqual(calls, [`has ${DIGEST}`, `pull ${DIGEST}`, `ask ${DIGEST} a`]);
  assert.equal(store.state(DIGEST, "IfNotPresent", 0, userOf("a")).kind, "present");
});

for (const [what, reference, failing] of [
  ["a tag, which may stand for something else there", "app:1", "REGISTRY_UNAVAILABLE"],
  ["an image that the registry denies", DIGEST, "IMAGE_DENIED"],
  ["an image that the registry does not know", DIGEST, "IMAGE_NOT_FOUND"],
] as const) {
  test(`no other node sends ${what}`, async () => {
    const { store, calls, settled } = aStore({ failing, nodes: {} });
    store.fetch(reference, "IfNotPresent");
    await settled();
    assert.deepEqual(calls, [`has ${reference}`, `pull ${reference}`]);
  });
}

test("a failure of both names both, and is tried again", async () => {
  const { store, settled } = aStore({ failing: "TIMEOUT", nodes: { problem: "no node has it" } });
  store.fetch(DIGEST, "IfNotPresent");
  await settled();
  const state = store.state(DIGEST, "IfNotPresent", 0);
  assert.equal(state.kind === "failed" && state.reason, "ImagePullBackOff");
  assert.match(
    state.kind === "failed" ? state.message : "",
    /failed: TIMEOUT; no other node sends it: no node has it/,
  );
});

test("other nodes come before the registry if the settings say so", async () => {
  const near = aStore({ nodes: { first: true } });
  near.store.fetch(DIGEST, "IfNotPresent");
  await near.settled();
  assert.deepEqual(near.calls.slice(1), [`ask ${DIGEST} `]);
  const lacking = aStore({ nodes: { first: true, problem: "no node has it" } });
  lacking.store.fetch(DIGEST, "IfNotPresent");
  await lacking.settled();
  assert.deepEqual(lacking.calls.slice(1), [`ask ${DIGEST} `, `pull ${DIGEST}`]);
  assert.equal(lacking.store.state(DIGEST, "IfNotPresent", 0).kind, "present");
});

test("a removed image is forgotten by any of its names", () => {
  const { store } = aStore({});
  store.seen("app:1");
  store.forget("docker.io/library/app:1");
  assert.equal(store.state("app:1", "IfNotPresent", 0).kind, "unknown");
});

interface StoreOptions {
  readonly local?: readonly string[];
  readonly failing?: RuntimeErrorCode;
  readonly denies?: (logins: readonly RegistryLogin[]) => boolean;
  /** Pulls end on demand. */
  readonly slow?: boolean;
  /** Other nodes, which send the image unless there is a problem. */
  readonly nodes?: { readonly first?: boolean; readonly problem?: string };
}

function aStore({ local: before = [], failing, denies, slow = false, nodes }: StoreOptions) {
  const calls: string[] = [];
  const local = [...before];
  const changes: string[] = [];
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
    access: anAccess(),
    otherNodes: nodes && {
      first: nodes.first ?? false,
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
