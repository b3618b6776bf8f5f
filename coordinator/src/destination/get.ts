import type { GetDestination, Update } from "@forage/proto/destination";
import { workloadKey } from "../model/workload.ts";
import { assertNamespace } from "../rpc/access.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { Change } from "../state/entries.ts";
import { Signal } from "../state/signal.ts";
import type { State } from "../state/state.ts";
import { type Told, updatesBetween } from "./diff.ts";
import { endpointsOf, findService } from "./endpoints.ts";
import { parseServicePath, type ServicePath } from "./path.ts";

export interface DestinationOptions {
  readonly state: State;
  /** For example `cluster.local`. */
  readonly domain: string;
  /** Whether callers need a token: not on the plain-text listener, which is for neighbours only. */
  readonly authorize: boolean;
}

/** The endpoints of one service port: complete at once, then each change. A slow reader gets one diff to the newest state. */
export async function* getDestination(
  request: GetDestination,
  context: CallContext,
  options: DestinationOptions,
): AsyncGenerator<Update> {
  const { state, domain } = options;
  const path = parseServicePath(request.path, domain);
  if (options.authorize) assertNamespace(context.caller, context.method, path.namespace);
  const changed = new Signal();
  const unsubscribe = state.subscribe((changes) => {
    if (changes.some((change) => concerns(change, path, state))) changed.raise();
  });
  try {
    let told: Told | undefined;
    while (!context.signal.aborted) {
      const exists = findService(state, path.namespace, path.service) !== undefined;
      const endpoints = endpointsOf(state, path.namespace, path.service, path.port);
      const step = updatesBetween(told, exists, endpoints, {
        namespace: path.namespace,
        service: path.service,
      });
      told = step.told;
      yield* step.updates;
      await changed.wait(context.signal);
    }
  } finally {
    unsubscribe();
  }
}

function concerns(change: Change, { namespace, service }: ServicePath, state: State): boolean {
  switch (change.kind) {
    case "resource": {
      const record = (change.after ?? change.before)?.record;
      return record?.namespace === namespace && record.kind === "service" && record.name === service;
    }
    case "pod": {
      const target = findService(state, namespace, service)?.spec.target;
      const pod = change.after ?? change.before;
      return target !== undefined && pod?.workloadKey === workloadKey(namespace, "container_service", target);
    }
    case "node":
      return (
        change.before?.health.ready !== change.after?.health.ready ||
        change.before?.report !== change.after?.report ||
        change.before?.record !== change.after?.record
      );
    case "rollout":
    case "object":
      return false;
    default:
      return change satisfies never;
  }
}
