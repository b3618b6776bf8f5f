import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  type FilesSource,
  type PodVolumeSpec,
  type PodVolumes,
  VolumeError,
  type VolumeErrorCode,
  type VolumeMount,
  type VolumeSource,
} from "../src/volumes/volumes.ts";

/** One host. */
export interface VolumesUnderTest {
  /** Returns the volumes of a new agent on the host. The previous one has ended. */
  open(): PodVolumes;
}

const signal = new AbortController().signal;

const SCRATCH = { type: "emptyDir", medium: "disk" } as const;

function files(contents?: Readonly<Record<string, string>>, changes: Partial<FilesSource> = {}): FilesSource {
  return {
    type: "files",
    secret: false,
    title: "config map web",
    items: [],
    defaultMode: 0,
    optional: false,
    ...(contents && {
      contents: new Map(Object.entries(contents).map(([key, text]) => [key, Buffer.from(text)])),
    }),
    ...changes,
  };
}

function claim(name: string, changes: Partial<VolumeSource & { type: "claim" }> = {}): VolumeSource {
  return { type: "claim", namespace: "shop", claim: name, readOnly: false, ...changes };
}

function aPod(uid: string, sources: Readonly<Record<string, VolumeSource>>): PodVolumeSpec {
  return { uid, volumes: Object.entries(sources).map(([name, source]) => ({ name, source })) };
}

function mount(volume: string, changes: Partial<VolumeMount> = {}): VolumeMount {
  return { volume, mountPath: `/mnt/${volume}`, subPath: "", readOnly: false, ...changes };
}

/** Tests the contract on which the supervisor relies, for every implementation. */
export function testPodVolumes(name: string, makeHost: (t: TestContext) => Promise<VolumesUnderTest>): void {
  const check = (what: string, run: (volumes: PodVolumes, host: VolumesUnderTest) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 60_000 }, async (t) => {
      const host = await makeHost(t);
      const volumes = host.open();
      await volumes.recover({ knownUids: new Set(), inUse: [] }, signal);
      await run(volumes, host);
    });

  check("containers of a prepared pod get the same binds each time, parents first", async (volumes) => {
    const pod = aPod("a", { scratch: SCRATCH, config: files({ key: "1" }) });
    await volumes.prepare(pod, signal);
    await volumes.prepare(pod, signal);
    const mounts = [
      mount("config", { mountPath: "/mnt/scratch/etc/" }),
      mount("scratch"),
      mount("scratch", { mountPath: "/ro", readOnly: true }),
    ];
    const binds = await volumes.binds("a", "web", mounts, signal);
    assert.deepEqual(
      binds.map(({ target, readOnly }) => [target, readOnly]),
      [
        ["/ro", true],
        ["/mnt/scratch", false],
        ["/mnt/scratch/etc", true],
      ],
    );
    assert.equal(binds[0]?.source, binds[1]?.source);
    assert.deepEqual(await volumes.binds("a", "web", mounts, signal), binds);
    await volumes.prepare(pod, signal);
    assert.deepEqual(await volumes.binds("a", "sidecar", mounts, signal), binds);
  });

  check("sub-paths have separate paths on the host", async (volumes) => {
    await volumes.prepare(aPod("a", { scratch: SCRATCH }), signal);
    const mounts = ["x", "y/z"].map((subPath) => mount("scratch", { subPath, mountPath: `/${subPath}` }));
    const [first, second] = await Promise.all(
      ["web", "sidecar"].map((container) => volumes.binds("a", container, mounts, signal)),
    );
    const sources = [...(first ?? []), ...(second ?? [])].map(({ source }) => source);
    assert.equal(new Set(sources).size, 4);
    for (const source of sources) assert.doesNotMatch(source, /[,:"\n]/);
  });

  check("a pod without volumes is prepared too", async (volumes) => {
    await volumes.prepare(aPod("a", {}), signal);
    assert.deepEqual(await volumes.binds("a", "web", [], signal), []);
    await volumes.release("a", signal);
  });

  check("rejects missing contents as retryable, unless they are optional", async (volumes) => {
    await assert.rejects(
      volumes.prepare(aPod("a", { config: files() }), signal),
      failsWith("SOURCE_MISSING", true),
    );
    const items = [{ key: "other", path: "x", mode: 0 }];
    const halfThere = aPod("a", { config: files({ key: "1" }, { items }) });
    await assert.rejects(volumes.prepare(halfThere, signal), failsWith("SOURCE_MISSING", true));
    await volumes.prepare(aPod("a", { config: files({ key: "1" }) }), signal);
    await volumes.prepare(aPod("b", { config: files(undefined, { optional: true }) }), signal);
    assert.equal((await volumes.binds("b", "web", [mount("config")], signal)).length, 1);
  });

  check("update changes contents, and accepts missing ones", async (volumes) => {
    const pod = aPod("a", { config: files({ key: "1" }), scratch: SCRATCH });
    await volumes.prepare(pod, signal);
    const before = await volumes.binds("a", "web", [mount("config")], signal);
    await volumes.update(aPod("a", { config: files({ key: "2" }), scratch: SCRATCH }), signal);
    await volumes.update(aPod("a", { config: files(), scratch: SCRATCH }), signal);
    assert.deepEqual(await volumes.binds("a", "web", [mount("config")], signal), before);
  });

  check("rejects an impossible specification for good", async (volumes) => {
    await volumes.prepare(aPod("a", { scratch: SCRATCH }), signal);
    await assert.rejects(volumes.prepare(aPod("../a", {}), signal), failsWith("INVALID", false));
    await assert.rejects(volumes.release("../a", signal), failsWith("INVALID", false));
    for (const bad of [
      mount("other"),
      mount("scratch", { subPath: "../x" }),
      mount("scratch", { mountPath: "x" }),
    ]) {
      await assert.rejects(volumes.binds("a", "web", [bad], signal), failsWith("INVALID", false));
    }
  });

  check("binds requires a call of prepare by the same agent", async (volumes, host) => {
    const pod = aPod("a", { scratch: SCRATCH });
    await assert.rejects(volumes.binds("a", "web", [], signal), failsWith("HOST_FAILED", true));
    await volumes.prepare(pod, signal);
    const binds = await volumes.binds("a", "web", [mount("scratch")], signal);
    const next = host.open();
    await next.recover({ knownUids: new Set(["a"]), inUse: [] }, signal);
    await assert.rejects(next.binds("a", "web", [], signal), failsWith("HOST_FAILED", true));
    await next.prepare(pod, signal);
    assert.deepEqual(await next.binds("a", "web", [mount("scratch")], signal), binds);
  });

  check("a pod waits for an undeclared claim, which is not created", async (volumes) => {
    const undeclared = aPod("a", { data: claim("db", { undeclared: true }) });
    await assert.rejects(volumes.prepare(undeclared, signal), failsWith("SOURCE_MISSING", true));
    assert.deepEqual(await shapeOfClaims(volumes), []);
    await volumes.prepare(aPod("a", { data: claim("db") }), signal);
    assert.deepEqual(await shapeOfClaims(volumes), [["db", undefined, "a"]]);
  });

  check(
    "claims outlive their pods, list their users, and are removed only without users",
    async (volumes) => {
      const capacityBytes = 8 * 1024 * 1024;
      await volumes.prepare(aPod("a", { data: claim("db", { capacityBytes }) }), signal);
      await volumes.prepare(
        aPod("b", { data: claim("db", { readOnly: true }), more: claim("logs") }),
        signal,
      );
      const [bind] = await volumes.binds("b", "web", [mount("data")], signal);
      assert.equal(bind?.readOnly, true);
      await volumes.prepare(aPod("a", { data: claim("db", { capacityBytes }) }), signal);
      assert.deepEqual(await shapeOfClaims(volumes), [
        ["db", capacityBytes, "a b"],
        ["logs", undefined, "b"],
      ]);
      await assert.rejects(volumes.removeClaim("shop", "db", signal), failsWith("IN_USE", true));
      await volumes.release("a", signal);
      await assert.rejects(volumes.removeClaim("shop", "db", signal), failsWith("IN_USE", true));
      await volumes.release("b", signal);
      assert.deepEqual(await shapeOfClaims(volumes), [
        ["db", capacityBytes, ""],
        ["logs", undefined, ""],
      ]);
      await volumes.removeClaim("shop", "db", signal);
      await volumes.removeClaim("shop", "db", signal);
      await volumes.removeClaim("nowhere", "db", signal);
      assert.deepEqual(await shapeOfClaims(volumes), [["logs", undefined, ""]]);
    },
  );

  check("a new agent keeps known pods and releases the others", async (volumes, host) => {
    for (const uid of ["a", "b"]) {
      await volumes.prepare(aPod(uid, { scratch: SCRATCH, data: claim(`data-${uid}`) }), signal);
    }
    const next = host.open();
    await next.recover({ knownUids: new Set(["a", "never-seen"]), inUse: [] }, signal);
    assert.deepEqual(await shapeOfClaims(next), [
      ["data-a", undefined, "a"],
      ["data-b", undefined, ""],
    ]);
  });

  check(
    "release is complete when it resolves, may be repeated, and accepts unknown pods",
    async (volumes) => {
      await volumes.release("never-seen", signal);
      await volumes.prepare(aPod("a", { scratch: SCRATCH, config: files({ key: "1" }) }), signal);
      await volumes.release("a", signal);
      await volumes.release("a", signal);
      await assert.rejects(volumes.binds("a", "web", [], signal), failsWith("HOST_FAILED", true));
    },
  );

  check("an aborted call rejects with ABORTED", async (volumes) => {
    const aborted = AbortSignal.abort();
    const pod = aPod("a", { scratch: { ...SCRATCH, sizeLimitBytes: 1024 * 1024 } });
    await assert.rejects(volumes.prepare(pod, aborted), failsWith("ABORTED", true));
  });

  check("pods don't affect each other", async (volumes) => {
    const uids = Array.from({ length: 8 }, (_, index) => `pod-${index}`);
    const sources = {
      scratch: SCRATCH,
      config: files({ key: "1" }, { secret: true }),
      data: claim("shared"),
    };
    await Promise.all(uids.map((uid) => volumes.prepare(aPod(uid, sources), signal)));
    assert.deepEqual(await shapeOfClaims(volumes), [["shared", undefined, uids.join(" ")]]);
    await Promise.all(uids.map((uid) => volumes.release(uid, signal)));
    assert.deepEqual(await shapeOfClaims(volumes), [["shared", undefined, ""]]);
  });
}

async function shapeOfClaims(volumes: PodVolumes) {
  const claims = await volumes.claims();
  return claims
    .map(({ name, capacityBytes, users }) => [name, capacityBytes, [...users].sort().join(" ")])
    .sort(([a], [b]) => String(a).localeCompare(String(b)));
}

function failsWith(code: VolumeErrorCode, retryable: boolean): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof VolumeError, String(error));
    assert.deepEqual([error.code, error.retryable], [code, retryable], error.message);
    return true;
  };
}
