import type { ServeRequest, ServeResponse, SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../../errors.ts";
import type { SessionBroker, Tunnel } from "../../link/session-broker.ts";
import { assertNamespace } from "../../rpc/access.ts";
import { type CallContext, callerName } from "../../rpc/caller.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { Clock } from "../../time/clock.ts";
import type { NamespaceRules } from "../namespaces/namespace-rules.ts";
import { containerOf, type FoundPod, findPodOrKept, findPresentPod, nodeOfPod } from "./find.ts";
import type { PodUse } from "./pod-use.ts";

export interface SessionsOptions {
  readonly state: ClusterView;
  readonly clock: Pick<Clock, "nowMs">;
  readonly broker: SessionBroker;
  readonly namespaceRules: Pick<NamespaceRules, "checkSession">;
  readonly podUse: Pick<PodUse, "begin">;
}

/** A tunnel that counts as use of its pod until `outputOf` has ended. */
export interface PodSession extends Tunnel {
  readonly endUse: () => void;
}

/** The target of a session, from the first frame of the request. */
export interface SessionTarget {
  readonly namespace: string;
  readonly pod: string;
  /** The container's name. Empty: the main container. */
  readonly container: string;
}

export type SessionOutput = Exclude<NonNullable<ServeRequest["frame"]>, { readonly $case: "sessionId" }>;

/**
 * Checks the caller's rights, finds the pod and requests a session from its node. @throws CoordinatorError with a message
 * for the caller.
 */
export function openSession(
  target: SessionTarget,
  kind: NonNullable<SessionRequest["kind"]>,
  context: CallContext,
  { state, clock, broker, namespaceRules, podUse }: SessionsOptions,
): PodSession {
  assertNamespace(context.caller, context.method, target.namespace);
  const { namespace, pod: named } = target;
  const { pod, keptUntilMs }: FoundPod =
    kind.$case === "logs"
      ? findPodOrKept(state, namespace, named, clock.nowMs())
      : { pod: findPresentPod(state, namespace, named, clock.nowMs()) };
  // Logs only contain what the pod itself wrote; other sessions act with the pod's rights.
  if (kind.$case !== "logs") namespaceRules.checkSession(pod.record, context.caller);
  // For a removed pod, the node only has the names of containers, and not which one is the main container.
  const name = target.container || (keptUntilMs === undefined ? "" : mainContainerOf(pod));
  const container = containerOf(pod, name);
  const request = { podUid: pod.record.uid, container, kind };
  const tunnel = broker.open(nodeOfPod(pod), request, context.signal, callerName(context.caller));
  return { ...tunnel, endUse: kind.$case === "logs" ? () => {} : podUse.begin(pod.record) };
}

function mainContainerOf({ record }: PodEntry): string {
  return record.template?.container?.name ?? "";
}

/**
 * Yields the agent's output including the final result. Leaving the loop ends the session. @throws CoordinatorError
 * FAILED_PRECONDITION if the agent could not serve the session.
 */
export async function* outputOf(tunnel: PodSession): AsyncGenerator<SessionOutput> {
  try {
    for await (const { frame } of tunnel.fromAgent) {
      if (frame === undefined || frame.$case === "sessionId") continue;
      if (frame.$case === "end" && frame.value.error !== "")
        throw new CoordinatorError("FAILED_PRECONDITION", frame.value.error);
      yield frame;
      if (frame.$case === "end") return;
    }
  } finally {
    tunnel.toAgent.close();
    tunnel.endUse();
  }
}

/** Forwards the client's input as fast as the agent accepts it. The end of the client's stream ends the input. */
export async function sendInput<Request>(
  incoming: AsyncIterator<Request>,
  tunnel: Tunnel,
  toFrame: (request: Request) => ServeResponse["frame"],
): Promise<void> {
  while (true) {
    const next = await incoming.next();
    const frame = next.done ? ({ $case: "stdinClosed", value: true } as const) : toFrame(next.value);
    if (frame !== undefined && !(await tunnel.toAgent.push({ frame }))) return;
    if (next.done) return;
  }
}

/** Returns the first frame of a client's stream, which contains the request. */
export async function firstOf<Request>(incoming: AsyncIterator<Request>): Promise<Request | undefined> {
  const first = await incoming.next();
  return first.done ? undefined : first.value;
}

export function startMissing(): CoordinatorError {
  return new CoordinatorError("INVALID", "the first frame must be start");
}
