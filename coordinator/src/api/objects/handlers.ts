import type { Log } from "@forage/common/log";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import { hasLabels } from "../../model/labels.ts";
import { type ObjectName, titleOf } from "../../model/object-name.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import type { ObjectEntry } from "../../state/entries.ts";
import type { NamespaceRules } from "../namespaces/namespace-rules.ts";
import type { ObjectDraft } from "./draft.ts";
import { planObject } from "./plan.ts";
import { type PutOptions, putObject } from "./put.ts";
import { notFound, removeObject } from "./remove.ts";
import { validateKind, validateName, validatePut } from "./validate.ts";
import { builtInViews, objectView, openView } from "./views.ts";

export interface ObjectOptions extends PutOptions {
  readonly namespaceRules: NamespaceRules;
  readonly log: Log;
}

export type ObjectReadOptions = Pick<ObjectOptions, "state" | "vault">;

export type ObjectHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  "putObject" | "planObject" | "getObject" | "listObjects" | "deleteObject" | "revealObject"
>;

/**
 * Returns the handlers of the calls for objects, such as secrets, that pods refer to by name. Calls that read or write
 * values are logged without the values.
 */
export function objectHandlers(options: ObjectOptions): ObjectHandlers {
  const { state, vault, log } = options;
  const note = (action: string, { namespace, kind, name }: ObjectName, { caller }: CallContext): void =>
    log.info({
      event: "object-call",
      action,
      namespace,
      kind,
      name,
      by: caller.type === "user" ? caller.name : caller.type,
    });
  return {
    putObject: async (request, context) => {
      const draft = validatePut(request);
      const action = await options.namespaceRules.inTurn(draft.name.namespace, async () => {
        options.namespaceRules.checkObject(draft.name, bytesOf(draft), context.caller);
        return putObject(draft, request.createOnly, options);
      });
      if (action !== "unchanged") note(action, draft.name, context);
      return { object: objectView(find(draft.name, options), state), action };
    },
    planObject: async (request, context) => {
      const draft = validatePut(request);
      options.namespaceRules.checkObject(draft.name, bytesOf(draft), context.caller);
      const { action, changes } = planObject(draft, options);
      return { action, changes: [...changes] };
    },
    ...objectReadHandlers(options),
    deleteObject: async (request, context) => {
      const name = validateName(request);
      const pending = await removeObject(name, options);
      note("deleted", name, context);
      return { pending };
    },
    revealObject: async (request, context) => {
      const name = validateName(request);
      const entry = find(name, options);
      if (entry.record.versions.length === 0)
        throw new CoordinatorError("INVALID", `${titleOf(name)} has no values to reveal`);
      note("revealed", name, context);
      return { object: openView(entry, state, vault) };
    },
  };
}

/** Returns the handlers of calls that only read objects, without values of secrets. */
export function objectReadHandlers(
  options: ObjectReadOptions,
): Pick<ObjectHandlers, "getObject" | "listObjects"> {
  const { state, vault } = options;
  return {
    getObject: async (request) => {
      const name = validateName(request);
      const builtIn = builtInViews().find(
        (view) => name.kind === "priority_class" && view.name === name.name,
      );
      if (builtIn !== undefined) return { object: builtIn };
      const entry = find(name, options);
      return {
        object: name.kind === "config_map" ? openView(entry, state, vault) : objectView(entry, state),
      };
    },
    listObjects: async (request) => ({ objects: list(request, options) }),
  };
}

function bytesOf({ content }: ObjectDraft): number {
  return Object.values(content ?? {}).reduce((sum, value) => sum + value.byteLength, 0);
}

function list(
  { namespace, kind, labels }: wire.ListObjectsRequest,
  { state }: ObjectReadOptions,
): wire.Object[] {
  const filter = {
    ...(namespace !== "" && { namespace }),
    ...(kind !== "" && { kind: validateKind(kind) }),
  };
  const views = state.objects
    .list(filter)
    .filter(({ record }) => hasLabels(record.labels, labels))
    .map((entry) => objectView(entry, state));
  const withBuiltIn = namespace === "" && (kind === "" || kind === "priority_class") && hasLabels({}, labels);
  return [...(withBuiltIn ? builtInViews() : []), ...views];
}

function find(name: ObjectName, { state }: ObjectReadOptions): ObjectEntry {
  const entry = state.objects.get(name);
  if (entry === undefined) throw notFound(name);
  return entry;
}
