import { WhyResponse } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { describeWhy } from "../view/why.ts";
import { parseReference } from "./reference.ts";

interface Subject {
  /** The namespace; empty for nodes. */
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

export const why = defineCommand({
  name: "why",
  summary: "Explain why something waits, restarts, isn't ready or was rolled back, and what can be done",
  details: "A name without a kind is looked for among pods, then resources, then nodes.",
  operands: [
    {
      name: "POD|KIND/NAME",
      required: true,
      help: "a pod (or the beginning of its uid), container_service/NAME or another resource, node/NAME",
    },
  ],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [target = ""] = invocation.operands;
    await withCoordinator(context, async (coordinator) => {
      const subject = await find(target, context, coordinator);
      const answer = await coordinator.call(operator.why, subject);
      printOne(
        context,
        () => WhyResponse.toJSON(answer),
        () =>
          context.format === "name"
            ? `${subject.kind}/${subject.name}\n`
            : describeWhy(answer, context.world.nowMs(), context.paint),
      );
    });
    return EXIT.ok;
  },
});

async function find(target: string, { settings }: Context, coordinator: Coordinator): Promise<Subject> {
  const { namespace } = settings;
  const reference = parseReference(target);
  if (reference !== undefined) {
    const { what, name } = reference;
    return {
      namespace: what === "node" ? "" : namespace,
      kind: what === "resource" ? reference.kind : what,
      name,
    };
  }
  const { pods, kept } = await coordinator.call(operator.listPods, {
    namespace,
    labels: {},
    workload: "",
    node: "",
    name: target,
  });
  if (pods.length + kept.length > 0) return { namespace, kind: "pod", name: target };
  const { resources } = await coordinator.call(operator.listResources, { namespace, labels: {} });
  // If several objects have the name, workloads come before the services in front of them, because
  // users ask about them more often.
  const named = resources.filter(({ name }) => name === target).sort((a, b) => rank(a.kind) - rank(b.kind));
  if (named[0] !== undefined) return { namespace, kind: named[0].kind, name: target };
  const { nodes } = await coordinator.call(operator.listNodes, {});
  if (nodes.some(({ name }) => name === target)) return { namespace: "", kind: "node", name: target };
  throw new CliError(
    "NOT_FOUND",
    `there is no pod, resource or node "${target}"; namespace "${namespace}" was looked in (--namespace)`,
  );
}

const ORDER = ["container_service", "job", "cron_job", "service", "route"];

function rank(kind: string): number {
  return ORDER.indexOf(kind);
}
