import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkspaceInitializer } from "@forage/proto/content-service-api/initializer";
import { StartWorkspaceRequest, WorkspaceFeatureFlag, WorkspaceType } from "@forage/proto/core";
import { CoordinatorError } from "../../errors.ts";
import { WORKSPACES_SCHEMA } from "../settings.ts";
import { validateStart } from "./validate.ts";

type Change = Parameters<typeof StartWorkspaceRequest.fromPartial>[0];
type Spec = NonNullable<NonNullable<Change>["spec"]>;

const SETTINGS = WORKSPACES_SCHEMA.parse({ classes: [{ id: "small" }, { id: "large" }] });
const DIGEST = `sha256:${"0".repeat(64)}`;

function aRequest({ metadata, spec, ...rest }: Change = {}): StartWorkspaceRequest {
  return StartWorkspaceRequest.fromPartial({
    ...{ id: "instance-1", servicePrefix: "prefix-1", ...rest },
    metadata: { owner: "owner-1", metaId: "meta-1", ...metadata },
    spec: {
      workspaceImage: "registry.example/workspace:1",
      workspaceLocation: "project",
      initializer: { spec: { $case: "empty", value: {} } },
      ...spec,
    },
  });
}

function git(change: object): Spec {
  const value = { remoteUri: "https://git.example/a.git", config: {}, ...change };
  return { initializer: { spec: { $case: "git", value } } };
}

function download(file: object, targetLocation = ""): Spec {
  const files = [{ url: "https://example.org/a", filePath: "a", digest: DIGEST, ...file }];
  return { initializer: { spec: { $case: "download", value: { files, targetLocation } } } };
}

function nested(depth: number): WorkspaceInitializer {
  if (depth === 0) return { spec: { $case: "empty", value: {} } };
  return { spec: { $case: "composite", value: { initializer: [nested(depth - 1)] } } };
}

/** Returns the error's code, and the paths of the fields in it. */
function refusalOf(request: StartWorkspaceRequest): readonly [string, readonly string[]] {
  try {
    validateStart(request, SETTINGS);
    return ["none", []];
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return [error.code, error.violations.map(({ field }) => field)];
  }
}

test("accepts every type, class and initializer", () => {
  const { REGULAR, PREBUILD, PROBE, IMAGEBUILD } = WorkspaceType;
  for (const type of [REGULAR, PREBUILD, PROBE, IMAGEBUILD])
    assert.deepEqual(refusalOf(aRequest({ type })), ["none", []]);
  const snapshot = { snapshot: "owner/meta/a.tar.zst@main" };
  const prebuild = { prebuild: snapshot, git: [{ remoteUri: "http://git.example/a.git", config: {} }] };
  const specs: readonly Spec[] = [
    ...[
      { class: "" },
      { class: "large" },
      { timeout: "1h30m" },
      { featureFlags: [WorkspaceFeatureFlag.NOOP, WorkspaceFeatureFlag.FIXED_RESOURCES] },
    ],
    git({ targetMode: 2, cloneTaget: "main", checkoutLocation: "a/b" }),
    download({}, "files"),
    { initializer: { spec: { $case: "snapshot", value: snapshot } as const } },
    { initializer: { spec: { $case: "prebuild", value: prebuild } as const } },
    { initializer: { spec: { $case: "backup", value: {} } as const } },
    { initializer: nested(3) },
  ];
  for (const spec of specs) assert.deepEqual(refusalOf(aRequest({ spec })), ["none", []]);
});

const INVALID: readonly (readonly [string, Change])[] = [
  ["id", { id: "" }],
  ["id", { id: "a".repeat(61) }],
  ["service_prefix", { servicePrefix: "" }],
  ["service_prefix", { servicePrefix: "two.labels" }],
  ["type", { type: 3 as WorkspaceType }],
  ["metadata.owner", { metadata: { owner: "" } }],
  ["metadata.meta_id", { metadata: { metaId: "with space" } }],
  ["metadata.annotations[a]", { metadata: { annotations: { a: "x".repeat(4_096) } } }],
  ["metadata.team", { metadata: { team: "x".repeat(1_001) } }],
  ...invalidSpecs().map(([path, spec]) => [`spec.${path}`, { spec }] as const),
];

function invalidSpecs(): readonly (readonly [string, Spec])[] {
  const port = (change: object): Spec => ({ ports: [{ port: 8080, ...change }] });
  const variable = (change: object): Spec => ({ envvars: [{ name: "A", value: "b", ...change }] });
  return [
    ["workspace_image", { workspaceImage: "Not An Image" }],
    ["workspace_location", { workspaceLocation: "a/../b" }],
    ["timeout", { timeout: "-1h" }],
    ["timeout", { timeout: "745h" }],
    ["class", { class: "huge" }],
    ["admission", { admission: 7 as 0 }],
    ["ports[0].port", port({ port: 0 })],
    ["ports[0].visibility", port({ visibility: 5 })],
    ["ports[1].port", { ports: [{ port: 1 }, { port: 1 }] }],
    ["ports", { ports: Array.from({ length: 101 }, (_, index) => ({ port: index + 1 })) }],
    ["envvars[0].name", variable({ name: "A=B" })],
    ["envvars[0].value", variable({ value: "x".repeat(131_072) })],
    ["envvars[0].secret.key", variable({ value: "", secret: { secretName: "db", key: "" } })],
    ["ssh_public_keys[0]", { sshPublicKeys: ["command=x ssh-ed25519 AAAA"] }],
    ["git.username", { git: { username: "a\nb", email: "" } }],
    ["feature_flags[0]", { featureFlags: [99 as WorkspaceFeatureFlag] }],
    ["initializer.git.remote_uri", git({ remoteUri: "file:///etc" })],
    ["initializer.git.upstream_Remote_uri", git({ upstreamRemoteUri: "git@example.org:a.git" })],
    ["initializer.git.clone_taget", git({ targetMode: 1 })],
    ["initializer.git.clone_taget", git({ cloneTaget: "main\n" })],
    ["initializer.git.target_mode", git({ targetMode: 9 })],
    ["initializer.git.checkout_location", git({ checkoutLocation: "../outside" })],
    ["initializer.git.config", git({ config: undefined })],
    ["initializer.git.config.auth_ots", git({ config: { authentication: 2 } })],
    ["initializer.git.config.authentication", git({ config: { authentication: 9 } })],
    ["initializer.snapshot.snapshot", { initializer: { spec: { $case: "snapshot", value: {} } } }],
    ["initializer.prebuild.prebuild", { initializer: { spec: { $case: "prebuild", value: {} } } }],
    ["initializer.download.files[0].url", download({ url: "ftp://example.org/a" })],
    ["initializer.download.files[0].file_path", download({ filePath: "../a" })],
    ["initializer.download.files[0].digest", download({ digest: "sha256:short" })],
    ["initializer.download.target_location", download({}, "/a/../..")],
    [
      "initializer.composite.initializer[0].composite.initializer[0].composite.initializer[0].composite.initializer",
      { initializer: nested(4) },
    ],
  ];
}

for (const [path, change] of INVALID)
  test(`refuses a fault in ${path} as INVALID: ${JSON.stringify(change).slice(0, 60)}`, () => {
    assert.deepEqual(refusalOf(aRequest(change)), ["INVALID", [path]]);
  });

const UNSUPPORTED: readonly (readonly [string, Spec])[] = [
  ["spec.feature_flags[0]", { featureFlags: [WorkspaceFeatureFlag.PERSISTENT_VOLUME_CLAIM] }],
  ["spec.feature_flags[0]", { featureFlags: [WorkspaceFeatureFlag.FULL_WORKSPACE_BACKUP] }],
  ["spec.volume_snapshot", { volumeSnapshot: { volumeSnapshotName: "a", volumeSnapshotHandle: "" } }],
  [
    "spec.initializer.snapshot.from_volume_snapshot",
    { initializer: { spec: { $case: "snapshot", value: { snapshot: "a", fromVolumeSnapshot: true } } } },
  ],
  [
    "spec.initializer.composite.initializer[0].backup.from_volume_snapshot",
    {
      initializer: {
        spec: {
          $case: "composite",
          value: { initializer: [{ spec: { $case: "backup", value: { fromVolumeSnapshot: true } } }] },
        },
      },
    },
  ],
];

for (const [path, spec] of UNSUPPORTED)
  test(`refuses ${path} as FAILED_PRECONDITION: ${JSON.stringify(spec).slice(0, 60)}`, () => {
    assert.deepEqual(refusalOf(aRequest({ spec })), ["FAILED_PRECONDITION", [path]]);
  });
