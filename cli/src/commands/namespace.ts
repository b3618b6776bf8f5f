import { Namespace, PodPolicy } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { plainText } from "../output/plain-text.ts";
import type { Column } from "../output/table.ts";
import {
  namespaceColumns,
  policyColumns,
  quotaColumns,
  quotaRows,
  shownPolicies,
  violationLines,
} from "../view/namespaces.ts";

const NAME = { name: "NAMESPACE", required: true, help: "name of the namespace" } as const;
const NONE = "there are no namespaces yet";
const ROLES = ["editor", "admin", "global"] as const;
const ROLE = {
  type: "text",
  hint: "ROLE",
  choices: ROLES,
  help: "only for tokens with this role in the namespace; global: for tokens of all namespaces. Default: editor and admin",
} as const;

const ls = defineCommand({
  name: "ls",
  summary: "List namespaces with what they use",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const rows = await namespaces(context, context.settings.flagNamespace ?? "");
    printNamespaces(context, rows);
    return EXIT.ok;
  },
});

const policyGet = defineCommand({
  name: "get",
  summary: "Show what pods may be created in a namespace, and by whom",
  operands: [NAME],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [found] = await namespaces(context, invocation.operands[0] ?? "");
    printPolicies(context, found === undefined ? [] : [found]);
    return EXIT.ok;
  },
});

const policyLs = defineCommand({
  name: "ls",
  summary: "List the policies of all namespaces",
  run: async (invocation) => {
    const context = contextOf(invocation);
    printPolicies(context, await namespaces(context, ""));
    return EXIT.ok;
  },
});

const policySet = defineCommand({
  name: "set",
  summary: "Set the policy for pods in a namespace",
  details: `Replaces the policy as a whole: what isn't given is not allowed beyond the profile. The profiles are those of Kubernetes:
privileged allows everything, baseline what doesn't reach the host (the default for tokens limited to namespaces), restricted demands
hardened pods. Running pods stay as they are, cron jobs that violate the policy start no further runs, and both are named in a warning.`,
  operands: [NAME],
  flags: {
    role: ROLE,
    profile: {
      type: "text",
      hint: "PROFILE",
      choices: ["privileged", "baseline", "restricted"],
      help: "what is allowed without further flags. Default: baseline",
    },
    "host-path": {
      type: "list",
      hint: "PREFIX[:ro]",
      help: "allow host paths below it; :ro for reading only",
    },
    capability: { type: "list", hint: "NAME", help: "allow containers to add the capability" },
    "host-network": { type: "switch", help: "allow the host's network" },
    "host-port": { type: "list", hint: "PORT[-LAST]", help: "in the host's network only these ports" },
    privileged: { type: "switch", help: "allow privileged containers" },
    device: { type: "list", hint: "RESOURCE", help: "of the nodes' devices only these" },
    "runtime-class": { type: "list", hint: "NAME", help: "only these runtime classes" },
    default: { type: "switch", help: "remove the policy: the default applies again" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const policy = PodPolicy.fromPartial({
      role: flags.role ?? "",
      profile: flags.profile ?? "baseline",
      privileged: flags.privileged,
      hostNetwork: flags["host-network"],
      hostPorts: [...flags["host-port"]],
      hostPaths: [...flags["host-path"]],
      capabilities: [...flags.capability],
      devices: [...flags.device],
      runtimeClasses: [...flags["runtime-class"]],
    });
    const request = { namespace: invocation.operands[0] ?? "", policy, remove: flags.default };
    const answer = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.setNamespacePolicy, request),
    );
    printPolicies(context, answer.namespace === undefined ? [] : [answer.namespace]);
    return EXIT.ok;
  },
});

const quotaGet = defineCommand({
  name: "get",
  summary: "Show a namespace's quota and what is used of it",
  operands: [NAME],
  run: async (invocation) => {
    const context = contextOf(invocation);
    printQuotas(context, await namespaces(context, invocation.operands[0] ?? ""));
    return EXIT.ok;
  },
});

const quotaLs = defineCommand({
  name: "ls",
  summary: "List the quotas of all namespaces",
  run: async (invocation) => {
    const context = contextOf(invocation);
    printQuotas(context, await namespaces(context, ""));
    return EXIT.ok;
  },
});

const AMOUNTS = {
  pods: { type: "text", hint: "NUMBER", help: "pods that workloads ask for at most" },
  cpu: { type: "text", hint: "CORES", help: "sum of the pods' requests, such as 4 or 2500m" },
  memory: { type: "text", hint: "BYTES", help: "sum of the pods' requests, such as 8Gi" },
  objects: { type: "text", hint: "NUMBER", help: "resources, secrets, config maps and claims" },
  bytes: { type: "text", hint: "BYTES", help: "what those hold together, such as 16Mi" },
} as const;

const quotaSet = defineCommand({
  name: "set",
  summary: "Limit the resources of a namespace",
  details: `Changes the limits that are given; "none" removes one. A limit that is set applies to every caller. The defaults (1000 pods,
1000 objects, 64Mi) apply only to tokens that are limited to namespaces. Existing pods and objects stay.`,
  operands: [NAME],
  flags: {
    ...AMOUNTS,
    default: { type: "switch", help: "remove all limits first: the defaults apply again" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const limits: Record<string, string> = {};
    for (const resource of Object.keys(AMOUNTS) as (keyof typeof AMOUNTS)[]) {
      const text = flags[resource];
      if (text !== undefined) limits[resource] = text === "none" ? "" : text;
    }
    if (Object.keys(limits).length === 0 && !flags.default)
      throw new CliError(
        "USAGE",
        "give at least one of --pods, --cpu, --memory, --objects, --bytes, --default",
      );
    const request = { namespace: invocation.operands[0] ?? "", limits, reset: flags.default };
    const answer = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.setNamespaceQuota, request),
    );
    printQuotas(context, answer.namespace === undefined ? [] : [answer.namespace]);
    return EXIT.ok;
  },
});

export const namespace = groupCommands("namespace", "Manage pod policies and quotas of namespaces", [
  ls,
  groupCommands("policy", "Which pods may be created in a namespace", [policyGet, policySet, policyLs]),
  groupCommands("quota", "How much a namespace may ask for", [quotaGet, quotaSet, quotaLs]),
]);

async function namespaces(context: Context, of: string): Promise<Namespace[]> {
  const answer = await withCoordinator(context, (coordinator) =>
    coordinator.call(operator.listNamespaces, { namespace: of }),
  );
  return answer.namespaces;
}

function printPolicies(context: Context, rows: readonly Namespace[]): void {
  printParts(context, rows, policyColumns(), shownPolicies);
  for (const row of rows)
    for (const line of violationLines(row)) context.world.stderr.write(`${plainText(line)}\n`);
}

function printQuotas(context: Context, rows: readonly Namespace[]): void {
  printParts(context, rows, quotaColumns(), quotaRows);
}

/**
 * Prints the rows of one kind for all namespaces as a table. JSON and YAML show whole namespaces.
 */
function printParts<Part extends { readonly namespace: string }>(
  context: Context,
  rows: readonly Namespace[],
  columns: readonly Column<Part>[],
  partsOf: (of: Namespace) => Part[],
): void {
  const { format } = context;
  if (format === "json" || format === "yaml") printNamespaces(context, rows);
  else
    printListing(context, {
      columns,
      rows: rows.flatMap(partsOf),
      json: () => undefined,
      name: (row) => `namespace/${row.namespace}`,
      none: NONE,
    });
}

function printNamespaces(context: Context, rows: readonly Namespace[]): void {
  printListing(context, {
    columns: namespaceColumns(),
    rows,
    json: Namespace.toJSON,
    name: ({ name: it }) => `namespace/${it}`,
    none: NONE,
  });
}
