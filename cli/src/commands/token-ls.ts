import { ApiToken } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { formatAge } from "../duration.ts";
import { EXIT } from "../exit-code.ts";
import type { Column } from "../output/table.ts";
import { age, toMs } from "../view/timestamp.ts";

export const tokenLs = defineCommand({
  name: "ls",
  summary: "List the API tokens, without their secrets",
  details: `Times of use are kept to the minute. Expired tokens stay in the list for a week.`,
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { tokens } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listApiTokens, {}),
    );
    printListing(context, {
      columns: tokenColumns(context.world.nowMs()),
      rows: tokens,
      json: ApiToken.toJSON,
      name: ({ id }) => `token/${id}`,
      none: "there are no API tokens: `forage token create --role viewer` makes one",
    });
    return EXIT.ok;
  },
});

export const tokenRevoke = defineCommand({
  name: "revoke",
  summary: "End an API token",
  details: `It is refused from now on, and streams that use it end within a second. ID is what "forage token ls" shows: the part of the
token between flt_ and the next _.`,
  operands: [{ name: "ID", required: true, help: "id of the token" }],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [id = ""] = invocation.operands;
    await withCoordinator(context, (coordinator) => coordinator.call(operator.revokeApiToken, { id }));
    context.world.stdout.write(`token/${id} revoked\n`);
    return EXIT.ok;
  },
});

function tokenColumns(nowMs: number): Column<ApiToken>[] {
  return [
    { title: "ID", value: ({ id }) => id },
    { title: "ROLE", value: ({ role }) => role },
    {
      title: "NAMESPACES",
      value: ({ namespaces }) => (namespaces.length === 0 ? "all" : namespaces.join(",")),
    },
    { title: "AGE", value: ({ createdAt }) => age(createdAt, nowMs), alignRight: true },
    { title: "EXPIRES", value: (token) => expiry(token, nowMs), alignRight: true },
    {
      title: "LAST USED",
      value: ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : `${age(lastUsedAt, nowMs)} ago`),
      alignRight: true,
    },
    { title: "DESCRIPTION", value: ({ description }) => description },
  ];
}

function expiry({ expired, expiresAt }: ApiToken, nowMs: number): string {
  if (expiresAt === undefined) return "never";
  return expired ? "expired" : formatAge(toMs(expiresAt) - nowMs);
}
