import { Authority } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import type { Column } from "../output/table.ts";
import { dateTime } from "../view/timestamp.ts";
import { confirm } from "./confirm.ts";

const ls = defineCommand({
  name: "ls",
  summary: "List the cluster's certificate authorities, and the nodes that depend on an old one",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { authorities } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listAuthorities, {}),
    );
    printListing(context, {
      columns: COLUMNS,
      rows: authorities,
      json: Authority.toJSON,
      name: ({ pin }) => `ca/${pin}`,
      none: "the cluster has no authority",
    });
    return EXIT.ok;
  },
});

const bundle = defineCommand({
  name: "print",
  summary: "Print the roots of the cluster, for the CA files of clients",
  details: "While an authority is replaced there are two. Clients need both before the old one is retired.",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { authorities } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listAuthorities, {}),
    );
    context.world.stdout.write(authorities.map(({ certificatePem }) => certificatePem).join(""));
    return EXIT.ok;
  },
});

const roll = defineCommand({
  name: "roll",
  summary: "Make a new certificate authority beside the present one",
  details: `From then on the coordinator trusts both. Connected nodes renew their certificates within seconds, and then trust both, too. Nothing is
restarted. Then give clients the new roots (forage ca print) and retire the old authority (forage ca retire).`,
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { authorities } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.rollAuthority, {}),
    );
    const made = authorities.at(-1)?.pin ?? "";
    context.world.stdout.write(
      `authority ${made} issues the certificates of nodes; to see which nodes depend on the old one: forage ca ls\n`,
    );
    return EXIT.ok;
  },
});

const retire = defineCommand({
  name: "retire",
  summary: "End the trust in the old certificate authority",
  details: `The coordinator refuses it while a node depends on the old authority. Its key is deleted. Clients whose CA file lacks the new root can't
connect any more, and join tokens that were made before can't be used.`,
  flags: { yes: { type: "switch", short: "y", help: "don't ask" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const question = `Retire the old certificate authority of ${context.settings.place()}? Clients need the new root in their CA file. [y/N] `;
    if (!invocation.flags.yes && !(await confirm(context, question))) return EXIT.failed;
    const { authorities } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.retireAuthority, {}),
    );
    context.world.stdout.write(`authority ${authorities[0]?.pin ?? ""} is the cluster's only one\n`);
    return EXIT.ok;
  },
});

export const ca = groupCommands("ca", "Show and replace the cluster's certificate authority", [
  ls,
  bundle,
  roll,
  retire,
]);

const MAX_SHOWN_NODES = 5;

const COLUMNS: readonly Column<Authority>[] = [
  { title: "PIN", value: ({ pin }) => pin },
  { title: "ISSUES FOR", value: usesOf },
  { title: "ENDS", value: ({ notAfter }) => dateTime(notAfter) },
  { title: "NODES THAT DEPEND ON IT", value: ({ nodes }) => namesOf(nodes), whenFilled: true },
];

function usesOf({ forServers, forNodes }: Authority): string {
  return [...(forServers ? ["coordinators"] : []), ...(forNodes ? ["nodes"] : [])].join(", ");
}

function namesOf(nodes: readonly string[]): string {
  const more = nodes.length - MAX_SHOWN_NODES;
  const shown = nodes.slice(0, MAX_SHOWN_NODES).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}
