import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, PodContainer } from "../pods/pod.ts";
import { IDENTITY_PATH, mountIdentity } from "./identity-volume.ts";

const MOUNT = { volume: "forage-identity", mountPath: IDENTITY_PATH, subPath: "", readOnly: true };

test("a pod without a service account has no token, even if one was received", () => {
  const { serviceAccount: _, ...pod } = aPod({});
  assert.equal(mountIdentity(pod), pod);
});

test("mounts the token in every container, unless the pod mounts something else there", () => {
  const own = { volume: "v", mountPath: `${IDENTITY_PATH}/`, subPath: "", readOnly: true };
  const pod = mountIdentity(
    aPod({
      containers: [aContainer("side", { mounts: [own] }), aContainer("main")],
      initContainers: [aContainer("init")],
    }),
  );
  assert.deepEqual(
    [...(pod.initContainers ?? []), ...pod.containers].map((it) => it.mounts),
    [[MOUNT], [own], [MOUNT]],
  );
});

test("the volume contains token, namespace and authority, on tmpfs, readable by the owner only", () => {
  const [volume] = mountIdentity(aPod({}), "PEM\n").volumes?.volumes ?? [];
  assert.deepEqual(volume, {
    name: "forage-identity",
    source: {
      type: "files",
      secret: true,
      title: "the token of service account builder",
      contents: new Map([
        ["token", new TextEncoder().encode("t0ken")],
        ["namespace", new TextEncoder().encode("shop")],
        ["ca.crt", new TextEncoder().encode("PEM\n")],
      ]),
      items: [],
      defaultMode: 0o600,
      optional: false,
    },
  });
});

test("the owner is the common user of all containers, else root", () => {
  const ownerOf = (...uids: (number | undefined)[]) => {
    const containers = uids.map((uid, index) =>
      aContainer(`c${index}`, uid === undefined ? {} : { user: { uid, supplementalGroups: [] } }),
    );
    const source = mountIdentity(aPod({ containers })).volumes?.volumes[0]?.source;
    return source?.type === "files" ? source.ownerUid : "none";
  };
  assert.equal(ownerOf(1000, 1000), 1000);
  assert.equal(ownerOf(1000, 1001), undefined);
  assert.equal(ownerOf(1000, undefined), undefined);
  assert.equal(ownerOf(undefined), undefined);
});

test("omits the authority if it is unknown", () => {
  const source = mountIdentity(aPod({})).volumes?.volumes[0]?.source;
  assert.ok(source?.type === "files");
  assert.deepEqual([...(source.contents?.keys() ?? [])], ["token", "namespace"]);
});

test("waits for a missing token, in a volume with the agent's name", () => {
  const [volume] = mountIdentity(aPod({}, null)).volumes?.volumes ?? [];
  assert.equal(volume?.source.type === "files" && volume.source.contents, undefined);
  const taken = { name: "forage-identity", source: { type: "emptyDir", medium: "disk" } } as const;
  assert.throws(
    () => mountIdentity(aPod({ volumes: { uid: "u1", volumes: [taken] } })),
    /forage-identity: the name is taken/,
  );
});

function aPod(change: Partial<Pod>, identityToken: string | null = "t0ken"): Pod {
  return {
    uid: "u1",
    namespace: "shop",
    name: "web-1",
    specHash: "h",
    stopping: false,
    hostname: "web-1",
    graceMs: 0,
    restartPolicy: "Always",
    containers: [aContainer("main")],
    serviceAccount: "builder",
    volumes: { uid: "u1", volumes: [] },
    objects: {
      secrets: [],
      configMaps: [],
      envVersions: {},
      registryCredentials: [],
      ...(identityToken !== null && { identityToken }),
    },
    ...change,
  };
}

function aContainer(name: string, change: Partial<PodContainer> = {}): PodContainer {
  return { name, image: "a:1", pullPolicy: "Never", command: [], args: [], env: [], ports: [], ...change };
}
