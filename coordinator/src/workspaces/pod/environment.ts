import type { WorkspaceInitializer } from "@forage/proto/content-service-api/initializer";
import type { EnvironmentVariable, GitSpec } from "@forage/proto/core";
import type { InstanceRecord, InstanceSecrets } from "@forage/proto/forage/workspaces/v1/records";
import { isHeadless } from "../phase/status.ts";
import { classOf, type WorkspaceSettings } from "../settings.ts";

/**
 * An environment variable of the container, with a value or a reference to a key of a secret in the
 * namespace.
 */
export interface Variable {
  readonly name: string;
  readonly source:
    | { readonly type: "value"; readonly value: string }
    | { readonly type: "secret"; readonly secret: string; readonly key: string };
}

/** The variables with the prefix GITPOD_ that a request may set, as with Gitpod's managers. */
const SETTABLE: ReadonlySet<string> = new Set([
  "GITPOD_WORKSPACE_CONTEXT",
  "GITPOD_WORKSPACE_CONTEXT_URL",
  "GITPOD_TASKS",
  "GITPOD_RESOLVED_EXTENSIONS",
  "GITPOD_EXTERNAL_EXTENSIONS",
  "GITPOD_IDE_ALIAS",
  "GITPOD_RLIMIT_CORE",
  "GITPOD_IMAGE_AUTH",
  "GITPOD_WORKSPACE_CLASS_INFO",
]);

/** The port on which the editor in Gitpod's images listens. */
const EDITOR_PORT = 23_000;

/**
 * Returns the environment of the workspace's container. Variables set by Forage take precedence
 * over those of the request; within the request, the last of equal names wins.
 */
export function environmentOf(
  record: InstanceRecord,
  secrets: InstanceSecrets,
  settings: WorkspaceSettings,
): readonly Variable[] {
  const variables = new Map<string, Variable>();
  for (const variable of secrets.envvars) {
    const found = requestedVariable(variable);
    if (found !== undefined) variables.set(found.name, found);
  }
  for (const [name, value] of Object.entries(ownVariables(record, secrets, settings)))
    if (value !== "") variables.set(name, { name, source: { type: "value", value } });
  return [...variables.values()];
}

/**
 * Converts a requested variable. Returns undefined for protected and empty variables, as Gitpod's
 * managers do. A value takes precedence over a secret.
 */
function requestedVariable({ name, value, secret }: EnvironmentVariable): Variable | undefined {
  if (name.startsWith("GITPOD_") && !SETTABLE.has(name)) return undefined;
  if (value !== "") return { name, source: { type: "value", value } };
  if (secret === undefined || secret.secretName === "") return undefined;
  return { name, source: { type: "secret", secret: secret.secretName, key: secret.key } };
}

function ownVariables(
  record: InstanceRecord,
  { initializer, git }: InstanceSecrets,
  settings: WorkspaceSettings,
): Readonly<Record<string, string>> {
  const { metadata, spec, workspaceLocation, id, type } = record;
  const roots = checkoutLocations(initializer).map((path) => inWorkspace(path));
  const { host, timeouts } = settings;
  return {
    GITPOD_REPO_ROOT: roots[0] ?? inWorkspace(""),
    GITPOD_REPO_ROOTS: (roots.length === 0 ? [inWorkspace("")] : roots).join(","),
    GITPOD_OWNER_ID: metadata?.owner ?? "",
    GITPOD_WORKSPACE_ID: metadata?.metaId ?? "",
    GITPOD_INSTANCE_ID: id,
    GITPOD_THEIA_PORT: String(EDITOR_PORT),
    THEIA_WORKSPACE_ROOT: inWorkspace(workspaceLocation),
    GITPOD_HOST: `https://${host}`,
    GITPOD_WORKSPACE_URL: spec?.url ?? "",
    GITPOD_WORKSPACE_CLUSTER_HOST: host,
    GITPOD_WORKSPACE_CLASS: spec?.class ?? "",
    GITPOD_INTERVAL: String(timeouts.heartbeatSeconds * 1000),
    GITPOD_MEMORY: memoryMegabytes(settings, spec?.class ?? ""),
    GITPOD_HEADLESS: isHeadless(type) ? "true" : "",
    ...gitVariables(git),
  };
}

function gitVariables(git: GitSpec | undefined): Readonly<Record<string, string>> {
  return { GITPOD_GIT_USER_NAME: git?.username ?? "", GITPOD_GIT_USER_EMAIL: git?.email ?? "" };
}

function inWorkspace(path: string): string {
  const relative = path.replace(/^\/+|\/+$/g, "");
  return relative === "" ? "/workspace" : `/workspace/${relative}`;
}

/** Returns the checkout locations of the initializers, in the order of the initializers. */
function checkoutLocations(initializer: WorkspaceInitializer | undefined): string[] {
  const spec = initializer?.spec;
  switch (spec?.$case) {
    case "git":
      return [spec.value.checkoutLocation];
    case "backup":
      return [spec.value.checkoutLocation];
    case "prebuild":
      return spec.value.git.map(({ checkoutLocation }) => checkoutLocation);
    case "composite":
      return spec.value.initializer.flatMap(checkoutLocations);
    default:
      return [];
  }
}

const UNIT_BYTES: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  Ki: 1024,
  M: 1e6,
  Mi: 1024 ** 2,
  G: 1e9,
  Gi: 1024 ** 3,
  T: 1e12,
  Ti: 1024 ** 4,
};

/** Returns the memory in MB for display in editors. Empty for an unknown class. */
function memoryMegabytes(settings: WorkspaceSettings, classId: string): string {
  const text = classOf(settings, classId)?.memory ?? "";
  const match = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(text);
  if (match === null) return "";
  return String(Math.floor((Number(match[1]) * (UNIT_BYTES[match[2] ?? ""] ?? 1)) / 1e6));
}
