import { type CapacityRequest, CapacityResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { describeCapacity } from "../view/what-if.ts";

export const capacity = defineCommand({
  name: "capacity",
  summary: "Count how many more pods of one shape the fleet takes, and show what runs out first",
  details: `The scheduler places pods on a copy of the fleet until one fits nowhere.`,
  flags: {
    cpu: { type: "text", hint: "CORES", help: "one pod requests so much, such as 500m" },
    memory: { type: "text", hint: "BYTES", help: "one pod requests so much, such as 256Mi" },
    request: { type: "list", hint: "RESOURCE=AMOUNT", help: "one pod requests so much of another resource" },
    like: {
      type: "text",
      hint: "NAME|KIND/NAME",
      help: "pods are like those of this container service, or of a job, with all their rules",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const shape = shapeOf(invocation.flags, context.settings.namespace);
    const found = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.capacity, { shape }),
    );
    printOne(
      context,
      () => CapacityResponse.toJSON(found),
      () => describeCapacity(found, context.paint),
    );
    return EXIT.ok;
  },
});

interface ShapeFlags {
  readonly cpu: string | undefined;
  readonly memory: string | undefined;
  readonly request: readonly string[];
  readonly like: string | undefined;
}

function shapeOf({ cpu, memory, request, like }: ShapeFlags, namespace: string): CapacityRequest["shape"] {
  const amounts = Object.fromEntries([
    ...(cpu === undefined ? [] : [["cpu", cpu]]),
    ...(memory === undefined ? [] : [["memory", memory]]),
    ...request.map(parseRequest),
  ]);
  const hasAmounts = Object.keys(amounts).length > 0;
  if (hasAmounts === (like !== undefined))
    throw new CliError("USAGE", "give either --like, or at least one of --cpu, --memory and --request");
  if (like === undefined) return { $case: "requests", value: { amounts } };
  const slash = like.indexOf("/");
  const kind = slash < 0 ? "container_service" : like.slice(0, slash);
  return { $case: "like", value: { namespace, kind, name: like.slice(slash + 1) } };
}

function parseRequest(text: string): [string, string] {
  const equals = text.indexOf("=");
  if (equals < 1 || equals === text.length - 1)
    throw new CliError("USAGE", `--request: "${text}" is not understood; write RESOURCE=AMOUNT`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}
