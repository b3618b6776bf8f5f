import assert from "node:assert/strict";
import { test } from "node:test";
import { checkClaimName, checkMounts, checkPod } from "./check-spec.ts";
import {
  type FilesSource,
  type PodVolumeSpec,
  VolumeError,
  type VolumeMount,
  type VolumeSource,
} from "./volumes.ts";

const FILES: FilesSource = {
  type: "files",
  secret: false,
  title: "config map web",
  contents: new Map(),
  items: [],
  defaultMode: 0,
  optional: false,
};

function aPod(source: VolumeSource, changes: Partial<PodVolumeSpec> = {}): PodVolumeSpec {
  return { uid: "pod-1", volumes: [{ name: "data", source }], ...changes };
}

function withItem(path: string, mode = 0): VolumeSource {
  return { ...FILES, items: [{ key: "a", path, mode }] };
}

function withKey(key: string, bytes = 1): VolumeSource {
  return { ...FILES, contents: new Map([[key, Buffer.alloc(bytes)]]) };
}

const nfs = (server: string, path = "/export"): VolumeSource => ({
  type: "nfs",
  server,
  path,
  readOnly: false,
});
const hostPath = (path: string): VolumeSource => ({ type: "hostPath", path, pathType: "" });

test("accepts at most 1,000 files in a volume", () => {
  const keys = (count: number) => new Map(Array.from({ length: count }, (_, i) => [`${i}`, Buffer.alloc(1)]));
  checkPod(aPod({ ...FILES, contents: keys(1_000) }));
  assert.throws(() => checkPod(aPod({ ...FILES, contents: keys(1_001) })), /more than 1000 files/);
});

test("accepts ordinary volumes", () => {
  for (const source of [
    { type: "emptyDir", medium: "disk" },
    FILES,
    withItem("a/b/..c"),
    withItem("config.yaml", 0o777),
    withItem(`a/${"é".repeat(127)}b`),
    withKey("app.conf"),
    withKey(".hidden"),
    { type: "claim", namespace: "shop", claim: "db.data-0", readOnly: false },
    hostPath("/var/log"),
    hostPath("/srv/a, b: c"),
    nfs("nas.example"),
    nfs("10.0.0.1"),
    nfs("[fd00::1]"),
  ] satisfies VolumeSource[]) {
    checkPod(aPod(source));
  }
});

test("accepts at most 255 bytes in a part of a path", () => {
  assert.throws(() => checkPod(aPod(withItem(`a/${"é".repeat(128)}`))), /too long/);
});

test("rejects impossible volumes and paths that lead out of them", () => {
  const volume = { name: "data", source: FILES };
  const claim = { type: "claim", capacityBytes: 1, readOnly: false } as const;
  for (const pod of [
    aPod(FILES, { uid: "../x" }),
    aPod(FILES, { uid: "" }),
    aPod(FILES, { volumes: [{ ...volume, name: "a/b" }] }),
    aPod(FILES, { volumes: [{ ...volume, name: ".." }] }),
    aPod(FILES, { volumes: [volume, volume] }),
    aPod(FILES, { volumes: Array.from({ length: 101 }, (_, index) => ({ ...volume, name: `v${index}` })) }),
    aPod(FILES, { fsGroup: { gid: -1, changePolicy: "Always" } }),
    aPod(FILES, { fsGroup: { gid: 2 ** 32 - 1, changePolicy: "Always" } }),
    aPod({ ...claim, namespace: "..", claim: "x" }),
    aPod({ ...claim, namespace: "shop", claim: ".gone-x" }),
    ...["/etc/x", "../x", "..", "..data", "..x/y", "a/../b", "", "a\0b", "x".repeat(256)].map((path) =>
      aPod(withItem(path)),
    ),
    aPod(withItem("a", 0o1000)),
    aPod(withItem("a", -1)),
    aPod({ ...FILES, defaultMode: 0o4755 }),
    ...["a/b", "..", ".", "..data", "", "a b", "x".repeat(254)].map((key) => aPod(withKey(key))),
    aPod(withKey("a", 1024 * 1024 + 1)),
    ...["relative", "/a/../b", "/a\0b", `/${"x/".repeat(2_100)}`].map((path) => aPod(hostPath(path))),
    ...["-oexec", "", "a b", "a:/b", "[x]", "a,b"].map((server) => aPod(nfs(server))),
    aPod(nfs("nas", "export")),
  ]) {
    assert.throws(() => checkPod(pod), isInvalid, JSON.stringify(pod));
  }
  assert.throws(() => checkClaimName("shop", "Data"), isInvalid);
});

test("mounts must name volumes of the pod, and paths that nerdctl accepts", () => {
  const volumes = new Set(["data"]);
  const mount: VolumeMount = { volume: "data", mountPath: "/data", subPath: "", readOnly: false };
  checkMounts([mount, { ...mount, mountPath: "/data/deeper/", subPath: "a/./b" }], volumes);
  for (const changes of [
    [{ volume: "other" }],
    [{ mountPath: "data" }],
    [{ mountPath: "/" }],
    [{ mountPath: "//" }],
    [{ mountPath: "/a/../b" }],
    [{ mountPath: "/a,readonly=false" }],
    [{ mountPath: "/a:b" }],
    [{ mountPath: "/a\nb" }],
    [{ mountPath: "/a" }, { mountPath: "/a/" }],
    [{ subPath: "/etc" }],
    [{ subPath: "a/../../b" }],
    [{ subPath: ".." }],
    [{ subPath: "a\0b" }],
  ] satisfies Partial<VolumeMount>[][]) {
    const mounts = changes.map((it) => ({ ...mount, ...it }));
    assert.throws(() => checkMounts(mounts, volumes), isInvalid, JSON.stringify(changes));
  }
});

function isInvalid(error: unknown): boolean {
  return error instanceof VolumeError && error.code === "INVALID" && !error.retryable;
}
