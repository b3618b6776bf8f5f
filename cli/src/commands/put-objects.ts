import type { Object as ApiObject, FieldChange } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import type { Context } from "../context.ts";
import type { ManifestObject } from "../manifest/bundles.ts";
import { type ManifestError, manifestError } from "../manifest/problem.ts";
import { plainText } from "../output/plain-text.ts";
import { OBJECT_WORDS, type ObjectKind } from "../view/object-kinds.ts";
import { kindOf } from "./prune.ts";
import { sendAgain } from "./send-again.ts";

/** The effect of a put of one object. */
export interface PlannedObject {
  readonly object: ApiObject;
  /** The action: "create", "update" or "unchanged". */
  readonly action: string;
  readonly changes: readonly FieldChange[];
}

/**
 * Puts the objects in order. If one is refused, the earlier ones have been put, as the output
 * shows.
 */
export async function putObjects(
  context: Context,
  coordinator: Coordinator,
  objects: readonly ManifestObject[],
): Promise<void> {
  for (const each of objects) {
    const { object } = each;
    const request = { namespace: object.namespace, object, createOnly: false };
    const { action } = await explained(each, () =>
      sendAgain(context, () => coordinator.call(operator.putObject, request)),
    );
    context.world.stderr.write(`${plainText(titleOf(object))} ${action}\n`);
  }
}

/**
 * Returns how a put of each object would change it, and changes nothing. Values of secrets are not
 * included.
 */
export async function planObjects(
  coordinator: Coordinator,
  objects: readonly ManifestObject[],
): Promise<readonly PlannedObject[]> {
  const planned: PlannedObject[] = [];
  for (const each of objects) {
    const { object } = each;
    const request = { namespace: object.namespace, object };
    const answer = await explained(each, () => coordinator.call(operator.planObject, request));
    planned.push({ object, action: answer.action, changes: answer.changes });
  }
  return planned;
}

/**
 * Returns the kind and name of an object, such as `secret/db`, with its namespace if it has one.
 */
export function titleOf({ namespace, name, spec }: ApiObject): string {
  const reference = `${wordOf(spec?.$case)}/${name}`;
  return namespace === "" ? reference : `${namespace} ${reference}`;
}

/** Converts a field such as `configMap` to the word for the kind in commands. */
function wordOf(field: string | undefined): string {
  const kind = kindOf(field);
  return Object.hasOwn(OBJECT_WORDS, kind) ? OBJECT_WORDS[kind as ObjectKind].one : kind;
}

async function explained<T>(object: ManifestObject, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw error instanceof CallError && error.violations.length > 0
      ? explainViolations(object, error)
      : error;
  }
}

function explainViolations({ origin }: ManifestObject, error: CallError): ManifestError {
  const { document, node, path } = origin;
  const problems = error.violations.map(({ field, description }) => ({
    position: document.positionOf(node),
    path,
    message: `${field.replace(/^object\./, "")}: ${description}`,
  }));
  return manifestError(problems, "the coordinator refuses an object:");
}
