import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import * as wire from "@forage/proto/forage/operator/v1/operator";
import type { CallContext } from "../rpc/caller.ts";
import type { Handlers } from "../rpc/serve.ts";
import { leaveOut } from "./leave-out.ts";
import { type PlannedFile, type ProcessSources, processFiles } from "./process-files.ts";
import type { WorkspaceSource } from "./workspace-source.ts";

/** The RPCs whose answers become files. */
export type SupportCalls = Pick<
  Handlers<typeof OperatorServiceService>,
  | "listResources"
  | "listPods"
  | "listNodes"
  | "listEndpoints"
  | "listObjects"
  | "listEvents"
  | "listAudit"
  | "listNamespaces"
  | "listApiTokens"
  | "listCoordinators"
  | "listCertificates"
  | "listAuthorities"
  | "listBackups"
  | "why"
>;

/** The sources of the coordinator's own files. */
export interface SupportSources extends ProcessSources {
  /** The workspaces; undefined if the coordinator serves none. */
  readonly workspaces: WorkspaceSource | undefined;
}

export interface OwnFilesOptions extends SupportSources {
  readonly calls: SupportCalls;
}

const MAX_EVENTS = 10_000;
const MAX_AUDIT_LINES = 1_000;
const MAX_WHY = 100;
const ALL = { namespace: "", labels: {} };

/** Returns the coordinator's own files, the most useful ones first. */
export function ownFiles(options: OwnFilesOptions, context: CallContext): PlannedFile[] {
  const { calls, workspaces } = options;
  const lines = (path: string, read: () => Promise<readonly unknown[]>): PlannedFile => ({
    path,
    content: async () => (await read()).map((it) => `${JSON.stringify(leaveOut(it))}\n`).join(""),
  });
  return [
    ...processFiles(options).map(({ path, content }) => ({ path: `coordinator/${path}`, content })),
    lines("coordinators.jsonl", async () =>
      (await calls.listCoordinators({}, context)).coordinators.map(wire.Coordinator.toJSON),
    ),
    lines("nodes.jsonl", async () => (await calls.listNodes({}, context)).nodes.map(wire.Node.toJSON)),
    lines("resources.jsonl", async () =>
      (await calls.listResources(ALL, context)).resources.map(wire.Resource.toJSON),
    ),
    lines("pods.jsonl", async () => {
      const { pods, kept } = await calls.listPods({ ...ALL, workload: "", node: "", name: "" }, context);
      return [...pods, ...kept].map(wire.Pod.toJSON);
    }),
    lines("why.jsonl", () => whyLines(calls, context)),
    lines("events.jsonl", async () => {
      const request = { namespace: "", filter: undefined, after: 0n, limit: MAX_EVENTS };
      return (await calls.listEvents(request, context)).events.map(wire.Event.toJSON);
    }),
    lines("objects.jsonl", async () =>
      (await calls.listObjects({ ...ALL, kind: "" }, context)).objects.map(wire.Object.toJSON),
    ),
    ...(workspaces === undefined ? [] : [workspacesFile(workspaces)]),
    lines("endpoints.jsonl", async () =>
      (await calls.listEndpoints({ namespace: "", service: "" }, context)).endpoints.map(
        wire.Endpoint.toJSON,
      ),
    ),
    lines("namespaces.jsonl", async () =>
      (await calls.listNamespaces({ namespace: "" }, context)).namespaces.map(wire.Namespace.toJSON),
    ),
    lines("api-tokens.jsonl", async () =>
      (await calls.listApiTokens({}, context)).tokens.map(wire.ApiToken.toJSON),
    ),
    lines("certificates.jsonl", async () =>
      (await calls.listCertificates({ hostname: "" }, context)).certificates.map(wire.Certificate.toJSON),
    ),
    lines("authorities.jsonl", async () =>
      (await calls.listAuthorities({}, context)).authorities.map(wire.Authority.toJSON),
    ),
    lines("backups.jsonl", async () =>
      (await calls.listBackups({}, context)).backups.map(wire.Backup.toJSON),
    ),
    { path: "audit.jsonl", content: () => auditText(calls, context) },
  ];
}

function workspacesFile(workspaces: WorkspaceSource): PlannedFile {
  const text = (): string =>
    workspaces
      .lines()
      .map((line) => `${JSON.stringify(line)}\n`)
      .join("");
  return { path: "workspaces.jsonl", content: async () => text() };
}

async function auditText(calls: SupportCalls, context: CallContext): Promise<string> {
  const request = { after: 0n, limit: MAX_AUDIT_LINES, newest: true };
  const { lines } = await calls.listAudit(request, context);
  return lines.map((line) => `${line}\n`).join("");
}

/** Explains nodes, resources and pods with problems, as many as the limit allows. */
async function whyLines(calls: SupportCalls, context: CallContext): Promise<unknown[]> {
  const { nodes } = await calls.listNodes({}, context);
  const { resources } = await calls.listResources(ALL, context);
  const { pods } = await calls.listPods({ ...ALL, workload: "", node: "", name: "" }, context);
  const subjects = [
    ...nodes.filter(({ ready }) => !ready).map(({ name }) => ({ namespace: "", kind: "node", name })),
    ...resources.map(({ namespace, kind, name }) => ({ namespace, kind, name })),
    ...pods
      .filter(({ status }) => status?.ready !== true)
      .map(({ namespace, name }) => ({ namespace, kind: "pod", name })),
  ];
  const found: unknown[] = [];
  for (const subject of subjects) {
    if (found.length >= MAX_WHY) break;
    // The object may have been removed since, and services have no explanation.
    const answer = await calls.why(subject, context).catch(() => undefined);
    if (answer !== undefined && !answer.healthy)
      found.push({ ...subject, ...(wire.WhyResponse.toJSON(answer) as object) });
  }
  return found;
}
