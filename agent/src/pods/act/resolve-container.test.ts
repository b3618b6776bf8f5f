import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import type { EnvEntry, EnvSource, ObjectContent, Pod, PodContainer } from "../pod.ts";
import { resolveContainer } from "./resolve-container.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function content(
  name: string,
  version: string,
  current: boolean,
  data: Record<string, Uint8Array>,
): ObjectContent {
  return { name, version, current, data: new Map(Object.entries(data)) };
}

const POD: Pod = {
  uid: "u1",
  namespace: "shop",
  name: "web-1",
  specHash: "h",
  stopping: false,
  hostname: "web-1",
  graceMs: 0,
  restartPolicy: "Always",
  containers: [],
  labels: { app: "web", "example.com/tier": "front" },
  annotations: { note: "it's here" },
  serviceAccount: "builder",
  objects: {
    secrets: [
      content("db", "v1", false, { password: bytes("before") }),
      content("db", "v2", true, {
        password: bytes("$(NOT) $$expanded"),
        binary: Uint8Array.of(0xff, 0xfe),
        nul: Uint8Array.of(65, 0, 66),
        bom: bytes("\uFEFFx"),
        long: new Uint8Array(128 * 1024).fill(65),
      }),
      content("pinned", "v1", false, { key: bytes("old") }),
      content("pinned", "v2", true, { key: bytes("new") }),
      content("lost", "v2", true, { key: bytes("new") }),
    ],
    configMaps: [content("db", "c1", true, { password: bytes("not secret") })],
    envVersions: { "secret/pinned": "v1", "secret/lost": "v1", "config_map/db": "c1" },
    registryCredentials: [],
  },
};

const FACTS = {
  nodeName: "node-7",
  podIps: ["10.64.0.2", "fd64::2"],
  hostIps: ["192.0.2.1", "2001:db8::1"],
  allocatable: { cpu: "3900m", memory: "1Gi", "ephemeral-storage": "10Gi" },
};

const RESOURCES = {
  "requests.cpu": "250m",
  "limits.cpu": "1500m",
  "requests.memory": "64Mi",
  "limits.memory": "0.5Gi",
  "limits.ephemeral-storage": "1k",
};

const VALUES: readonly (readonly [given: EnvSource, gives: string])[] = [
  [{ value: "plain" }, "plain"],
  [{ secret: "db", key: "password" }, "$(NOT) $$expanded"],
  [{ secret: "db", key: "bom" }, "\uFEFFx"],
  [{ secret: "pinned", key: "key" }, "old"],
  [{ config: "db", key: "password" }, "not secret"],
  [{ field: "metadata.name" }, "web-1"],
  [{ field: "metadata.namespace" }, "shop"],
  [{ field: "metadata.uid" }, "u1"],
  [{ field: "metadata.labels['app']" }, "web"],
  [{ field: "metadata.labels['example.com/tier']" }, "front"],
  [{ field: "metadata.labels['none']" }, ""],
  [{ field: "metadata.labels['toString']" }, ""],
  [{ field: "metadata.annotations['note']" }, "it's here"],
  [{ field: "spec.nodeName" }, "node-7"],
  [{ field: "spec.serviceAccountName" }, "builder"],
  [{ field: "status.podIP" }, "10.64.0.2"],
  [{ field: "status.podIPs" }, "10.64.0.2,fd64::2"],
  [{ field: "status.hostIP" }, "192.0.2.1"],
  [{ field: "status.hostIPs" }, "192.0.2.1,2001:db8::1"],
  [{ resourceField: "requests.cpu" }, "1"],
  [{ resourceField: "limits.cpu" }, "2"],
  [{ resourceField: "requests.memory" }, String(64 * 2 ** 20)],
  [{ resourceField: "limits.memory" }, String(2 ** 29)],
  [{ resourceField: "limits.ephemeral-storage" }, "1000"],
  [{ resourceField: "requests.ephemeral-storage" }, "0"],
];

for (const [given, gives] of VALUES) {
  test(`env from ${JSON.stringify(given)}`, () => {
    assert.deepEqual(resolve([{ name: "A", ...given }]), {
      env: [{ name: "A", value: gives }],
      command: [],
      args: [],
    });
  });
}

test("limits that aren't set resolve to the node's allocatable resources", () => {
  const names = ["cpu", "memory", "ephemeral-storage"];
  const env = names.map((it) => ({ name: it, resourceField: `limits.${it}` }));
  const resolved = resolveContainer(POD, aContainer(env), FACTS);
  assert.ok("env" in resolved);
  assert.deepEqual(
    resolved.env.map((it) => it.value),
    ["4", String(2 ** 30), String(10 * 2 ** 30)],
  );
});

const MISSING: readonly (readonly [given: EnvSource, gives: string | RegExp])[] = [
  [{ secret: "none", key: "password" }, "secret none doesn't exist"],
  [{ config: "none", key: "x" }, "config map none doesn't exist"],
  [{ secret: "db", key: "user" }, "secret db has no key user"],
  [{ config: "db", key: "user" }, "config map db has no key user"],
  [{ secret: "lost", key: "key" }, "secret lost doesn't exist"],
  [{ secret: "db", key: "binary" }, /^secret db: key binary is not UTF-8/],
  [{ secret: "db", key: "nul" }, /^secret db: key nul holds a NUL byte/],
  [{ secret: "db", key: "long" }, /^env A: longer than/],
  [{ field: "spec.secrets" }, "env A: there is no field spec.secrets"],
  [{ resourceField: "limits.gpu" }, "env A: there is no field limits.gpu"],
];

for (const [given, gives] of MISSING) {
  test(`waits for a change if env has ${JSON.stringify(given)}: ${gives}`, () => {
    const resolved = resolve([{ name: "A", ...given }]);
    assert.ok("missing" in resolved);
    if (typeof gives === "string") assert.equal(resolved.missing, gives);
    else assert.match(resolved.missing, gives);
  });
}

test("expands only values written in the pod, in env, command and args", () => {
  const env: EnvEntry[] = [
    { name: "NOT", value: "x" },
    { name: "SECRET", secret: "db", key: "password" },
    { name: "URL", value: "db://$(SECRET)@$(IP)" },
    { name: "IP", field: "status.podIP" },
  ];
  const container = {
    ...aContainer(env),
    command: ["run", "$(SECRET)"],
    args: ["$(IP)", "$$(IP)", "$(GONE)"],
  };
  assert.deepEqual(resolveContainer(POD, container, FACTS), {
    env: [
      { name: "NOT", value: "x" },
      { name: "SECRET", value: "$(NOT) $$expanded" },
      { name: "URL", value: "db://$(NOT) $$expanded@$(IP)" },
      { name: "IP", value: "10.64.0.2" },
    ],
    command: ["run", "$(NOT) $$expanded"],
    args: ["10.64.0.2", "$(IP)", "$(GONE)"],
  });
});

test("passes the exact text of a secret to the process", () => {
  const random = randomOf(7).next;
  const alphabet = ["$", "(", ")", "A", "B", "\n", "=", '"', "ä", "😀", " ", "\\", "%"];
  for (let round = 0; round < 500; round += 1) {
    const text = Array.from(
      { length: Math.floor(random() * 12) },
      () => alphabet[Math.floor(random() * alphabet.length)],
    ).join("");
    const objects = {
      secrets: [content("s", "v", true, { k: bytes(text) })],
      configMaps: [],
      envVersions: {},
      registryCredentials: [],
    };
    const env = [
      { name: "B", value: "b" },
      { name: "A", secret: "s", key: "k" },
      { name: "C", value: "<$(A)>" },
    ];
    const resolved = resolveContainer({ ...POD, objects }, aContainer(env), FACTS);
    assert.deepEqual("env" in resolved && resolved.env.slice(1).map((it) => it.value), [text, `<${text}>`]);
  }
});

function resolve(env: readonly EnvEntry[]) {
  return resolveContainer(POD, { ...aContainer(env), resources: RESOURCES }, FACTS);
}

function aContainer(env: readonly EnvEntry[]): PodContainer {
  return { name: "main", image: "a:1", pullPolicy: "Never", command: [], args: [], env, ports: [] };
}
