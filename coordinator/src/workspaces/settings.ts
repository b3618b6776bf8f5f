import * as z from "zod";
import { CONTENT_SCHEMA } from "./content/content-settings.ts";
import { INGRESS_SCHEMA } from "./ingress/ingress-settings.ts";
import { SSH_SCHEMA } from "./ssh/ssh-settings.ts";

const GIGABYTE = 1024n ** 3n;
/** A variable in a URL template, such as `{{.Name}}`, in the syntax of Gitpod's installer. */
const PLACEHOLDER = /\{\{\s*\.(\w+)\s*\}\}/g;
const VARIABLES = ["ID", "Prefix", "Host", "IngressPort", "WorkspacePort"] as const;
type Variable = (typeof VARIABLES)[number];

const template = (needed: readonly Variable[]) =>
  z
    .string()
    .max(500)
    .refine((text) => placeholdersOf(text).every((name) => VARIABLES.some((it) => it === name)), {
      error: `may use ${VARIABLES.map((name) => `{{.${name}}}`).join(", ")} only`,
    })
    .refine((text) => needed.every((name) => placeholdersOf(text).includes(name)), {
      error: `must use ${needed.map((name) => `{{.${name}}}`).join(" and ")}`,
    });

const seconds = (byDefault: number, meaning: string) =>
  // The limit is a month: longer than any workspace should live, and short enough to detect typing
  // errors.
  z.number().min(1).max(2_678_400).default(byDefault).describe(meaning);

const quantity = z
  .string()
  .regex(/^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/, "must be a quantity such as 500m or 2Gi");

const workspaceClass = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "must be a DNS label")
    .describe("The class in requests."),
  displayName: z.string().max(200).default("").describe("Name for people. Default: the id."),
  description: z
    .string()
    .max(1000)
    .default("")
    .describe("For readers of this file. The WorkspaceManager has no field for it."),
  cpu: quantity.default("1").describe("Requested CPU."),
  memory: quantity.default("2Gi").describe("Requested memory."),
  cpuLimit: quantity.optional().describe("Default: none."),
  memoryLimit: quantity.optional().describe("Default: none."),
  diskGigabytes: z
    .number()
    .min(0)
    .max(100_000)
    .default(0)
    .describe("Size limit of the content, for instances that start from now on. 0: none."),
  nodeSelector: z.record(z.string(), z.string()).default({}).describe("Labels that the node must have."),
  priorityClass: z.string().max(63).default("").describe("Priority class of the pods."),
});

/** The settings below `workspaces` in coordinator.yaml. */
export const WORKSPACES_SCHEMA = z.strictObject({
  enabled: z.boolean().default(false).describe("Serves Gitpod's WorkspaceManager."),
  namespace: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "must be a DNS label")
    .default("workspaces")
    .describe("Namespace of the pods, their secrets and the tokens' grants."),
  host: z.string().max(253).default("localhost").describe("The variable Host of the URL templates."),
  ingressPort: z.number().int().min(1).max(65_535).default(443).describe("The variable IngressPort."),
  urlTemplate: template(["Prefix"])
    .default("https://{{.Prefix}}.ws.{{.Host}}")
    .describe("URL of a workspace."),
  portUrlTemplate: template(["Prefix", "WorkspacePort"])
    .default("https://{{.WorkspacePort}}-{{.Prefix}}.ws.{{.Host}}")
    .describe("URL of a port of a workspace."),
  classes: z
    .array(workspaceClass)
    .min(1)
    // A fleet has only a few sizes.
    .max(100)
    .refine(
      (classes) => new Set(classes.map(({ id }) => id)).size === classes.length,
      "must have different ids",
    )
    .default([workspaceClass.parse({ id: "default" })])
    .describe("Sizes of workspaces. The first is the default."),
  command: z
    .array(z.string())
    .max(100)
    .default([])
    .describe("Command of workspace containers. Default: the image's."),
  args: z.array(z.string()).max(100).default([]).describe("Arguments of workspace containers."),
  hostMounts: z
    .array(
      z.strictObject({
        hostPath: z.string().startsWith("/").describe("Directory on each node."),
        mountPath: z.string().startsWith("/").describe("Where containers see it, read-only."),
      }),
    )
    .max(16)
    .default([])
    .describe("Directories of the nodes that workspaces read, such as an editor."),
  readiness: z
    .strictObject({
      port: z.number().int().min(1).max(65_535).describe("Port in the workspace."),
      path: z.string().startsWith("/").default("/").describe("Path that answers with 200 once it is ready."),
    })
    .optional()
    .describe("When a workspace is running. Default: when its container is."),
  imagePullSecrets: z
    .array(z.string().max(63))
    .max(16)
    .default([])
    .describe("Registry credentials of the namespace."),
  maxInstances: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .default(5_000)
    .describe("Workspaces that have not stopped; more are refused."),
  content: CONTENT_SCHEMA.prefault({}).describe("The store of backups and snapshots."),
  generations: z
    .number()
    .int()
    .min(1)
    .max(100)
    .default(3)
    .describe("Backups that are kept of each workspace."),
  backupMaxAgeDays: z
    .number()
    .int()
    .min(0)
    .max(36_500)
    .default(0)
    .describe(
      "How long the backups of a workspace without an instance are kept after its newest one. 0: without a limit.",
    ),
  snapshots: z
    .strictObject({
      perWorkspace: z
        .number()
        .int()
        .min(1)
        .max(10_000)
        .default(100)
        .describe("Snapshots that are kept of each workspace, the newest."),
      maxAgeDays: z
        .number()
        .int()
        .min(0)
        .max(36_500)
        .default(365)
        .describe("How long snapshots are kept. 0: without a limit."),
    })
    .prefault({})
    .describe("Which snapshots are kept. One that a workspace refers to always is."),
  stoppedRetentionSeconds: seconds(600, "How long a stopped workspace can still be described."),
  timeouts: z
    .strictObject({
      heartbeatSeconds: seconds(30, "How often users' editors report activity."),
      initializationSeconds: seconds(1_800, "Longest time in PENDING."),
      startupSeconds: seconds(3_600, "Longest time until RUNNING, and without any activity in RUNNING."),
      regularSeconds: seconds(1_800, "Longest time without activity."),
      afterCloseSeconds: seconds(120, "The same once it is closed."),
      headlessSeconds: seconds(3_600, "Lifetime of prebuilds, probes and image builds."),
      interruptedSeconds: seconds(300, "Longest time for which the node of a running workspace may be away."),
      maxLifetimeSeconds: seconds(129_600, "Longest lifetime."),
      contentFinalizationSeconds: seconds(
        3_600,
        "After that a backup that still fails is reported as a failure.",
      ),
      stoppingSeconds: seconds(3_600, "After that a pod that still runs is reported as a failure."),
    })
    .prefault({})
    .describe("Time-outs of workspaces."),
  ingress: INGRESS_SCHEMA.optional().describe("Serves the workspaces' URLs. Default: off."),
  ssh: SSH_SCHEMA.optional().describe("Lets people reach their workspaces by SSH. Default: off."),
});

export type WorkspaceSettings = z.infer<typeof WORKSPACES_SCHEMA>;
export type WorkspaceClassSettings = WorkspaceSettings["classes"][number];

export interface UrlValues {
  readonly id: string;
  readonly prefix: string;
  readonly port?: number;
}

/** Returns the URL of a workspace, or of one of its ports if `port` is given. */
export function workspaceUrl(settings: WorkspaceSettings, { id, prefix, port }: UrlValues): string {
  const values: Readonly<Record<string, string>> = {
    ID: id,
    Prefix: prefix,
    Host: settings.host,
    IngressPort: String(settings.ingressPort),
    WorkspacePort: String(port ?? ""),
  };
  const text = port === undefined ? settings.urlTemplate : settings.portUrlTemplate;
  return text.replace(PLACEHOLDER, (_all, name: string) => values[name] ?? "");
}

/**
 * Returns the class with the id, or the default class for an empty id; undefined for an unknown id.
 */
export function classOf(settings: WorkspaceSettings, id: string): WorkspaceClassSettings | undefined {
  return id === "" ? settings.classes[0] : settings.classes.find((it) => it.id === id);
}

/** Returns the size limit in bytes that the class sets for content; 0 means none. */
export function diskBytesOf(settings: WorkspaceSettings, id: string): bigint {
  return (BigInt(Math.round((classOf(settings, id)?.diskGigabytes ?? 0) * 1000)) * GIGABYTE) / 1000n;
}

function placeholdersOf(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = ""]) => name);
}
