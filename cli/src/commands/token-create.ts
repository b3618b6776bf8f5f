import { CreateApiTokenResponse, CreateJoinTokenResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import type { FlagValues } from "../command/flag.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { durationFlag } from "../duration-flag.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { parseLabels } from "./labels.ts";

const ROLES = ["viewer", "editor", "admin", "destination-reader"] as const;

const FLAGS = {
  node: { type: "text", hint: "NAME", help: "join token: only for a node of this name" },
  reusable: { type: "switch", help: "join token: valid for more than one node" },
  label: { type: "list", hint: "KEY=VALUE", help: "join token: label of the nodes that join with it" },
  ttl: {
    type: "text",
    hint: "DURATION",
    help: "how long it is valid; join tokens: 15m, at most 30m; API tokens: 90d, 0 for no end",
  },
  role: {
    type: "text",
    hint: "ROLE",
    choices: ROLES,
    help: "make an API token with this role instead of a join token",
  },
  description: { type: "text", hint: "TEXT", help: "API token: what it is for" },
} as const;

export const tokenCreate = defineCommand({
  name: "create",
  summary: "Make a token for a node to join with, or with --role one for people and programs",
  details: `The token is shown once and can't be read again: the coordinator keeps only its hash.
An API token covers the namespace given with -n, and all of them without -n.`,
  flags: FLAGS,
  run: async (invocation) => {
    const context = contextOf(invocation);
    if (invocation.flags.role === undefined) await createJoinToken(context, invocation.flags);
    else await createApiToken(context, invocation.flags, invocation.flags.role);
    return EXIT.ok;
  },
});

async function createJoinToken(context: Context, given: FlagValues<typeof FLAGS>): Promise<void> {
  if (given.description !== undefined)
    throw new CliError("USAGE", "--description is for API tokens: give a --role as well");
  const request = {
    ttlSeconds: ttlSeconds(given.ttl),
    nodeName: given.node ?? "",
    reusable: given.reusable,
    labels: parseLabels("--label", given.label),
    taints: [],
  };
  const response = await withCoordinator(context, (coordinator) =>
    coordinator.call(operator.createJoinToken, request),
  );
  printOne(
    context,
    () => CreateJoinTokenResponse.toJSON(response),
    () => `${response.token}\n`,
  );
}

async function createApiToken(
  context: Context,
  given: FlagValues<typeof FLAGS>,
  role: string,
): Promise<void> {
  for (const name of ["node", "reusable", "label"] as const) {
    const value = given[name];
    if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) continue;
    throw new CliError("USAGE", `--${name} is for join tokens, --role for API tokens: give one of them`);
  }
  const { flagNamespace } = context.settings;
  const request = {
    role,
    namespaces: flagNamespace === undefined ? [] : [flagNamespace],
    ttlSeconds: given.ttl === "0" ? 0n : BigInt(ttlSeconds(given.ttl)),
    description: given.description ?? "",
    neverExpires: given.ttl === "0",
  };
  if (request.neverExpires)
    context.world.stderr.write(
      "warning: this token never expires: anyone who obtains it can use it until `forage token revoke ID` ends it\n",
    );
  const response = await withCoordinator(context, (coordinator) =>
    coordinator.call(operator.createApiToken, request),
  );
  printOne(
    context,
    () => CreateApiTokenResponse.toJSON(response),
    () => `${response.token}\n`,
  );
}

function ttlSeconds(text: string | undefined): number {
  return text === undefined ? 0 : Math.ceil(durationFlag("--ttl", text) / 1000);
}
