import { Endpoint, GetRolloutResponse, Node, Pod, Resource } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { renderSection } from "../output/sections.ts";
import { describeNode } from "../view/describe-node.ts";
import { describePod } from "../view/describe-pod.ts";
import { describeResource, type ResourceDetail } from "../view/describe-resource.ts";
import { eventTable } from "../view/events.ts";
import type { ResourceKind } from "../view/kinds.ts";
import { eventsAbout } from "./event-query.ts";
import { findNode, findPod, findPodsAndKeptOf, findResource } from "./find.ts";
import { showObject } from "./object-commands.ts";
import { parseObjectReference, parseReference } from "./reference.ts";

export const describe = defineCommand({
  name: "describe",
  summary: "Show an object in detail, with everything that belongs to it",
  operands: [
    {
      name: "KIND/NAME",
      required: true,
      help: "a resource, pod/NAME (or the beginning of its uid), node/NAME, secret/NAME and the like",
    },
    { name: "NAME", help: "the name, if the first argument is only a kind" },
  ],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const target = targetOf(invocation.operands);
    const object = parseObjectReference(target);
    if (object !== undefined) {
      await withCoordinator(context, (coordinator) =>
        showObject(context, coordinator, object.kind, object.name),
      );
      return EXIT.ok;
    }
    const reference = parseReference(target);
    if (reference === undefined)
      throw new CliError(
        "USAGE",
        `its kind is missing: container_service/${target}, pod/${target}, node/${target}`,
      );
    await withCoordinator(context, async (coordinator) => {
      switch (reference.what) {
        case "pod":
          return showPod(context, coordinator, reference.name);
        case "node":
          return showNode(context, coordinator, reference.name);
        case "resource":
          return showResource(context, coordinator, reference);
        default:
          return reference satisfies never;
      }
    });
    return EXIT.ok;
  },
});

/** Parses `KIND/NAME` or `KIND NAME`. */
function targetOf([first = "", second]: readonly string[]): string {
  if (second === undefined) return first;
  if (first.includes("/")) throw new CliError("USAGE", `"${first}" names one already: leave "${second}" out`);
  return `${first}/${second}`;
}

async function showPod(context: Context, coordinator: Coordinator, name: string): Promise<void> {
  const { namespace } = context.settings;
  const pod = await findPod(coordinator, namespace, name);
  const { resources } = await coordinator.call(operator.listResources, { namespace, labels: {} });
  const workload = resources.find((each) => each.kind === pod.workloadKind && each.name === pod.workloadName);
  await show(
    context,
    coordinator,
    { namespace, kind: "pod", name: pod.name },
    () => Pod.toJSON(pod),
    (nowMs) => describePod(pod, workload?.spec, nowMs, context.paint),
  );
}

async function showNode(context: Context, coordinator: Coordinator, name: string): Promise<void> {
  const node = await findNode(coordinator, name);
  const { pods } = await coordinator.call(operator.listPods, {
    namespace: "",
    labels: {},
    workload: "",
    node: name,
    name: "",
  });
  await show(
    context,
    coordinator,
    { namespace: "", kind: "node", name },
    () => ({ node: Node.toJSON(node), pods: pods.map(Pod.toJSON) }),
    (nowMs) => describeNode(node, pods, nowMs, context.paint),
  );
}

async function showResource(
  context: Context,
  coordinator: Coordinator,
  reference: { readonly kind: ResourceKind; readonly name: string },
): Promise<void> {
  const { namespace } = context.settings;
  const { kind, name } = reference;
  const resource = await findResource(coordinator, namespace, reference);
  const isService = kind === "service";
  const { present, kept } = isService
    ? { present: [], kept: [] }
    : await findPodsAndKeptOf(coordinator, namespace, reference);
  const { endpoints } = isService
    ? await coordinator.call(operator.listEndpoints, { namespace, service: name })
    : { endpoints: [] };
  const detail: ResourceDetail = {
    resource,
    pods: [...present, ...kept],
    endpoints,
    rollout: await findRollout(coordinator, resource.rolloutId),
  };
  await show(
    context,
    coordinator,
    { namespace, kind, name },
    () => toJson(detail),
    (nowMs) => describeResource(detail, nowMs, context.paint),
  );
}

/** Returns the rollout; undefined if it is no longer kept. */
async function findRollout(
  coordinator: Coordinator,
  rolloutId: string,
): Promise<GetRolloutResponse | undefined> {
  if (rolloutId === "") return undefined;
  try {
    return await coordinator.call(operator.getRollout, { by: { $case: "rolloutId", value: rolloutId } });
  } catch (error) {
    if (error instanceof CallError && error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}

function toJson({ resource, pods, endpoints, rollout }: ResourceDetail): unknown {
  return {
    resource: Resource.toJSON(resource),
    pods: pods.map((pod) => Pod.toJSON(pod)),
    endpoints: endpoints.map((endpoint) => Endpoint.toJSON(endpoint)),
    ...(rollout !== undefined && { rollout: GetRolloutResponse.toJSON(rollout) }),
  };
}

interface About {
  /** The namespace; empty for nodes. */
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** Prints the description of an object together with its last events. */
async function show(
  context: Context,
  coordinator: Coordinator,
  { namespace, ...about }: About,
  json: () => unknown,
  text: (nowMs: number) => string,
): Promise<void> {
  const { format, world, paint } = context;
  const isForPeople = format === "table" || format === "wide";
  const events = isForPeople ? await eventsAbout(coordinator, namespace, about) : [];
  const nowMs = world.nowMs();
  const describeAll = (): string =>
    text(nowMs) + renderSection("Events", eventTable(events, nowMs, paint), paint);
  printOne(context, json, () => (format === "name" ? `${about.kind}/${about.name}\n` : describeAll()));
}
