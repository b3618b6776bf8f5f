import type { SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import type { SessionBroker, Tunnel } from "../link/session-broker.ts";
import { type CountBytes, TunnelStream } from "./tunnel-stream.ts";

/** A pod on its node. */
export interface PodPlace {
  readonly node: string;
  readonly uid: string;
}

/**
 * Connects to a port of a pod through its node's agent. Returns at once: a connection that fails destroys the stream with the reason.
 * Throws CoordinatorError when the node has no session with the coordinator.
 */
export type DialPod = (pod: PodPlace, port: number) => TunnelStream;

/** A command in a pod's main container, or the container's files by SFTP. */
export type PodSessionKind = Extract<NonNullable<SessionRequest["kind"]>, { $case: "exec" | "sftp" }>;

/** Opens a session in a pod's main container. It ends with the signal. Throws CoordinatorError as `DialPod` does. */
export type OpenInPod = (pod: PodPlace, kind: PodSessionKind, signal: AbortSignal) => Tunnel;

/** `moved` counts the bytes of all connections. */
export function dialThrough(broker: Pick<SessionBroker, "open">, moved?: CountBytes): DialPod {
  return ({ node, uid }, port) => {
    const over = new AbortController();
    const kind = { $case: "portForward", value: { port } } as const;
    const tunnel = broker.open(node, { podUid: uid, container: "", kind }, over.signal, callerOf(uid));
    return new TunnelStream(tunnel, () => over.abort(), moved);
  };
}

export function openThrough(broker: Pick<SessionBroker, "open">): OpenInPod {
  return ({ node, uid }, kind, signal) =>
    broker.open(node, { podUid: uid, container: "", kind }, signal, callerOf(uid));
}

/** Visitors of a pod share its places. */
function callerOf(uid: string): string {
  return `pod ${uid}`;
}
