import assert from "node:assert/strict";
import { test } from "node:test";
import { type ObjectData, PodAssignment, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { Container, Volume } from "@forage/proto/forest/v1/forage";
import type { VolumeSource } from "../volumes/volumes.ts";
import { parseObjects } from "./parse-objects.ts";
import { parseMounts, parseVolumes } from "./parse-volumes.ts";

type Given = NonNullable<Parameters<typeof Volume.fromPartial>[0]["source"]>;

const bytes = (text: string) => Buffer.from(text);
const SECRETS: ObjectData[] = [
  { name: "db", version: "old", current: false, data: { password: bytes("before") } },
  { name: "db", version: "new", current: true, data: { password: bytes("now") } },
];
const NOW = new Map([["password", bytes("now")]]);

const CASES: readonly (readonly [what: string, given: Given, gives: VolumeSource])[] = [
  ["empty_dir", { $case: "emptyDir", value: {} }, { type: "emptyDir", medium: "disk" }],
  [
    "empty_dir in memory with a limit",
    { $case: "emptyDir", value: { medium: "Memory", sizeLimit: "64Mi" } },
    { type: "emptyDir", medium: "memory", sizeLimitBytes: 64 * 2 ** 20 },
  ],
  [
    "a secret: its present content, whatever env is pinned to",
    { $case: "secret", value: { secretName: "db", defaultMode: 0o400, optional: true } },
    {
      type: "files",
      secret: true,
      title: "secret db",
      contents: NOW,
      items: [],
      defaultMode: 0o400,
      optional: true,
    },
  ],
  [
    "a secret that isn't there, with items",
    {
      $case: "secret",
      value: { secretName: "none", items: [{ key: "a", path: "b/c", mode: 0o440 }] },
    },
    {
      type: "files",
      secret: true,
      title: "secret none",
      items: [{ key: "a", path: "b/c", mode: 0o440 }],
      defaultMode: 0,
      optional: false,
    },
  ],
  [
    "a config map",
    { $case: "configMap", value: { configMapName: "web" } },
    {
      type: "files",
      secret: false,
      title: "config map web",
      contents: new Map([["a", bytes("1")]]),
      items: [],
      defaultMode: 0,
      optional: false,
    },
  ],
  [
    "a claim of the pod's namespace, with its capacity",
    { $case: "pvc", value: { claimName: "data", readOnly: true } },
    { type: "claim", namespace: "shop", claim: "data", capacityBytes: 2 ** 30, readOnly: true },
  ],
  [
    "a claim without a limit",
    { $case: "pvc", value: { claimName: "free" } },
    { type: "claim", namespace: "shop", claim: "free", readOnly: false },
  ],
  [
    "a claim that is not declared",
    { $case: "pvc", value: { claimName: "none" } },
    { type: "claim", namespace: "shop", claim: "none", readOnly: false, undeclared: true },
  ],
  [
    "host_path",
    { $case: "hostPath", value: { path: "/srv", type: "DirectoryOrCreate" } },
    { type: "hostPath", path: "/srv", pathType: "DirectoryOrCreate" },
  ],
  [
    "nfs",
    { $case: "nfs", value: { server: "nas", path: "/vol", readOnly: true } },
    { type: "nfs", server: "nas", path: "/vol", readOnly: true },
  ],
];

for (const [what, given, gives] of CASES) {
  test(`parses a volume of ${what}`, () => {
    assert.deepEqual(parse([{ name: "v", source: given }]).volumes, [{ name: "v", source: gives }]);
  });
}

for (const [what, volumes, problem] of [
  ["no source", [{ name: "v" }], /volume v: it has no source/],
  [
    "a name that is a path",
    [{ name: "../v", source: { $case: "emptyDir", value: {} } }],
    /can't be a volume/,
  ],
  [
    "a medium of its own",
    [{ name: "v", source: { $case: "emptyDir", value: { medium: "Tape" } } }],
    /"Tape" is not a medium/,
  ],
  [
    "a size that is none",
    [{ name: "v", source: { $case: "emptyDir", value: { sizeLimit: "much" } } }],
    /quantity/,
  ],
  [
    "a host path of a type of its own",
    [{ name: "v", source: { $case: "hostPath", value: { path: "/x", type: "Door" } } }],
    /"Door" is not a type/,
  ],
  [
    "a host path that is relative",
    [{ name: "v", source: { $case: "hostPath", value: { path: "x" } } }],
    /must be absolute/,
  ],
  [
    "an item that leads out",
    [
      {
        name: "v",
        source: { $case: "secret", value: { secretName: "db", items: [{ key: "a", path: "../x" }] } },
      },
    ],
    /must not contain \.\./,
  ],
] as const) {
  test(`rejects a volume with ${what}`, () => {
    assert.throws(() => parse(volumes as unknown as Parameters<typeof parse>[0]), problem);
  });
}

test("mounts belong to the container and must name volumes of the pod", () => {
  const spec = parse([{ name: "v", source: { $case: "emptyDir", value: {} } }]);
  const mounts = (given: object) =>
    parseMounts(Container.fromPartial({ name: "main", volumeMounts: [given] }), spec);
  assert.deepEqual(mounts({ name: "v", mountPath: "/data", subPath: "a/b", readOnly: true }), [
    { volume: "v", mountPath: "/data", subPath: "a/b", readOnly: true },
  ]);
  assert.throws(() => mounts({ name: "w", mountPath: "/data" }), /container main: .* no volume "w"/);
  assert.throws(() => mounts({ name: "v", mountPath: "data" }), /must be absolute/);
  assert.throws(() => mounts({ name: "v", mountPath: "/a", subPath: "../b" }), /must not contain \.\./);
});

function parse(volumes: readonly Parameters<typeof Volume.fromPartial>[0][]) {
  const assignment = PodAssignment.fromPartial({
    uid: "u1",
    namespace: "shop",
    secrets: SECRETS,
    configMaps: [{ name: "web", version: "v", current: true, data: { a: bytes("1") } }],
    claims: [
      { name: "data", capacityBytes: 2n ** 30n },
      { name: "free", capacityBytes: 0n },
    ],
    template: PodTemplate.fromPartial({ volumes: volumes.map((it) => Volume.fromPartial(it)) }),
  });
  return parseVolumes(assignment, parseObjects(assignment), undefined);
}

test("parses provided volumes and their mounts", () => {
  const volumes = parseVolumes(
    PodAssignment.fromPartial({
      uid: "a",
      template: { providedVolumes: [{ name: "work", provider: "workspace", id: "w-1" }] },
    }),
    parseObjects(PodAssignment.fromPartial({})),
    undefined,
  );
  assert.deepEqual(volumes.volumes, [
    { name: "work", source: { type: "provided", provider: "workspace", id: "w-1" } },
  ]);
});

test("rejects provided volumes whose id could be another path", () => {
  for (const id of ["", "../a", "a/b", ".a", "a".repeat(200)]) {
    const assignment = PodAssignment.fromPartial({
      uid: "a",
      template: { providedVolumes: [{ name: "work", provider: "workspace", id }] },
    });
    assert.throws(
      () => parseVolumes(assignment, parseObjects(PodAssignment.fromPartial({})), undefined),
      /not possible/,
    );
  }
});
