import { Revision } from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { renderDocument } from "../output/document.ts";
import type { Column } from "../output/table.ts";
import { age } from "../view/timestamp.ts";
import { parseResource } from "./reference.ts";

export const rolloutHistory = defineCommand({
  name: "history",
  summary: "List the revisions of a container service, or show one",
  details:
    "GOOD marks a revision whose pods were all available once. Rollbacks return to such a revision only.",
  operands: [{ name: "KIND/NAME", required: true, help: "which container service" }],
  flags: { revision: { type: "text", hint: "NUMBER", help: "show what this revision holds" } },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [target = ""] = invocation.operands;
    const request = { namespace: context.settings.namespace, ...parseResource(target) };
    const { revisions } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listRevisions, request),
    );
    const { revision } = invocation.flags;
    if (revision !== undefined) show(context, revisions, revisionNumber(revision), target);
    else
      printListing(context, {
        columns: columnsAt(context.world.nowMs()),
        rows: revisions,
        json: (row) => Revision.toJSON(row),
        name: ({ number }) => String(number),
        none: `${target} has no revisions`,
      });
    return EXIT.ok;
  },
});

/** Parses a revision number. */
export function revisionNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new CliError("USAGE", `"${text}" is not a revision number`);
}

function show(context: Context, revisions: readonly Revision[], number: number, target: string): void {
  const found = revisions.find((revision) => revision.number === number);
  if (found === undefined) {
    const kept = revisions.map((revision) => revision.number).join(", ");
    throw new CliError("NOT_FOUND", `${target} has no revision ${number}; it has ${kept}`);
  }
  printOne(
    context,
    () => Revision.toJSON(found),
    () => (found.spec === undefined ? "" : renderDocument("yaml", ForageResource.toJSON(found.spec))),
  );
}

function columnsAt(nowMs: number): Column<Revision>[] {
  return [
    { title: "REVISION", value: ({ number }) => String(number), alignRight: true },
    {
      title: "GOOD",
      value: ({ good }) => (good ? "yes" : "no"),
      style: ({ good }) => (good ? "good" : "busy"),
    },
    { title: "EFFECTIVE", value: ({ inForce }) => (inForce ? "yes" : "") },
    { title: "PODS", value: ({ pods }) => String(pods), alignRight: true },
    { title: "AGE", value: ({ createdAt }) => age(createdAt, nowMs), alignRight: true },
    { title: "IMAGE", value: imageOf },
    { title: "ROLLOUT", value: ({ rolloutId }) => rolloutId, wide: true },
    { title: "CHANGE CAUSE", value: ({ changeCause }) => changeCause, whenFilled: true },
  ];
}

function imageOf({ spec }: Revision): string {
  const chosen = spec?.spec;
  return chosen?.$case === "containerService" ? (chosen.value.container?.image ?? "") : "";
}
