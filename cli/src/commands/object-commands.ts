import { Object as ApiObject } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { type Command, defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { describeObject } from "../view/describe-object.ts";
import { OBJECT_WORDS, type ObjectKind } from "../view/object-kinds.ts";
import { objectColumns } from "../view/objects.ts";
import { notFound } from "./find.ts";
import { parseLabels } from "./labels.ts";
import { ALL_NAMESPACES_FLAG, assertOneChoice } from "./namespace-choice.ts";
import { parseSelector, SELECTOR_FLAG, type Selector } from "./selector.ts";

/** The specification of an object. */
export type ObjectSpec = NonNullable<ApiObject["spec"]>;

const NAME_OPERAND = { name: "NAME", required: true, help: "its name" } as const;

export const OBJECT_LABELS_FLAG = {
  type: "list",
  short: "l",
  hint: "KEY=VALUE",
  help: "label of the object",
} as const;

/** Creates or replaces one object, and prints which of both happened. */
export async function putObject(
  context: Context,
  object: { readonly kind: ObjectKind; readonly name: string; readonly labels: readonly string[] },
  spec: ObjectSpec,
  { createOnly = false }: { readonly createOnly?: boolean } = {},
): Promise<void> {
  const { kind, name } = object;
  const namespace = namespaceOf(context, kind);
  const request = {
    namespace,
    object: ApiObject.fromPartial({ namespace, name, labels: parseLabels("--label", object.labels), spec }),
    createOnly,
  };
  const response = await withCoordinator(context, (coordinator) =>
    coordinator.call(operator.putObject, request),
  );
  const reference = `${OBJECT_WORDS[kind].one}/${name}`;
  printOne(
    context,
    () => ({ action: response.action, object: toJson(response.object) }),
    () => (context.format === "name" ? `${reference}\n` : `${reference} ${response.action}\n`),
  );
}

/** Prints the objects of a kind, or the one with the name. An empty namespace means all. */
export async function listObjects(
  context: Context,
  coordinator: Coordinator,
  kind: ObjectKind,
  query: {
    readonly namespace: string;
    readonly selector: Selector;
    readonly name?: string | undefined;
  },
): Promise<void> {
  const { selector, name } = query;
  const namespace = kind === "priority_class" ? "" : query.namespace;
  const answer = await coordinator.call(operator.listObjects, { namespace, kind, labels: selector.equal });
  const objects = answer.objects.filter(({ labels }) => selector.matches(labels));
  const { one, many } = OBJECT_WORDS[kind];
  const rows = name === undefined ? objects : objects.filter((object) => object.name === name);
  if (name !== undefined && rows.length === 0) throw notFound(one, name, namespace, objects);
  printListing(context, {
    columns: objectColumns(kind, { nowMs: context.world.nowMs(), withNamespace: namespace === "" }),
    rows,
    json: toJson,
    name: (object) => `${one}/${object.name}`,
    none: namespace === "" ? `no ${many}` : `no ${many} in namespace "${namespace}"`,
    single: name !== undefined && rows.length === 1,
  });
}

/** Prints one object with its keys and sizes. */
export async function showObject(
  context: Context,
  coordinator: Coordinator,
  kind: ObjectKind,
  name: string,
  { reveal = false }: { readonly reveal?: boolean } = {},
): Promise<void> {
  const request = { namespace: namespaceOf(context, kind), kind, name };
  const { object } = await coordinator.call(operator.getObject, request);
  if (object === undefined) throw notFound(OBJECT_WORDS[kind].one, name, request.namespace, []);
  const values = reveal ? (await coordinator.call(operator.revealObject, request)).object : undefined;
  printOne(
    context,
    () => toJson(values ?? object),
    () =>
      context.format === "name"
        ? `${OBJECT_WORDS[kind].one}/${name}\n`
        : describeObject(kind, object, { nowMs: context.world.nowMs(), paint: context.paint, values }),
  );
}

export function listCommand(kind: ObjectKind): Command {
  return defineCommand({
    name: "ls",
    summary: `List ${OBJECT_WORDS[kind].many}`,
    flags: {
      "all-namespaces": ALL_NAMESPACES_FLAG,
      label: SELECTOR_FLAG,
    },
    run: async (invocation) => {
      const context = contextOf(invocation);
      const { flags } = invocation;
      assertOneChoice(flags);
      const namespace = flags["all-namespaces"] ? "" : namespaceOf(context, kind);
      const query = { namespace, selector: parseSelector("--label", flags.label) };
      await withCoordinator(context, (coordinator) => listObjects(context, coordinator, kind, query));
      return EXIT.ok;
    },
  });
}

export function getCommand(kind: ObjectKind): Command {
  return defineCommand({
    name: "get",
    summary: `Show one ${OBJECT_WORDS[kind].one}`,
    operands: [NAME_OPERAND],
    run: async (invocation) => {
      const context = contextOf(invocation);
      const [name = ""] = invocation.operands;
      await withCoordinator(context, (coordinator) => showObject(context, coordinator, kind, name));
      return EXIT.ok;
    },
  });
}

export function deleteObjectCommand(kind: ObjectKind): Command {
  const { one, many } = OBJECT_WORDS[kind];
  return defineCommand({
    name: "delete",
    summary: `Remove ${many}`,
    details: "An object that a resource or a pod refers to is not removed.",
    operands: [{ name: "NAME", required: true, repeated: true, help: "which" }],
    run: async (invocation) => {
      const context = contextOf(invocation);
      const namespace = namespaceOf(context, kind);
      await withCoordinator(context, async (coordinator) => {
        for (const name of invocation.operands) {
          const { pending } = await coordinator.call(operator.deleteObject, { namespace, kind, name });
          const how = pending ? "is being deleted: its node removes the data" : "deleted";
          context.world.stdout.write(`${one}/${name} ${how}\n`);
        }
      });
      return EXIT.ok;
    },
  });
}

export function namespaceOf(context: Context, kind: ObjectKind): string {
  if (kind !== "priority_class") return context.settings.namespace;
  if (context.settings.flagNamespace === undefined) return "";
  throw new CliError("USAGE", "priority classes belong to no namespace: leave -n out");
}

function toJson(object: ApiObject | undefined): unknown {
  return object === undefined ? {} : ApiObject.toJSON(object);
}
