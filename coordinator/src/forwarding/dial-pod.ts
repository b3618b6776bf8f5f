import type { SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import type { SessionBroker, Tunnel } from "../link/session-broker.ts";
import { type CountBytes, TunnelStream } from "./tunnel-stream.ts";

/** A pod on its node. */
export interface PodPlace {
  readonly node: string;
  readonly uid: string;
}

/**
 * Connects to a port of a pod through its node's agent. Returns at once: if the connection fails, the stream is destroyed
 * with the error. @throws CoordinatorError if the node has no session with the coordinator.
 */
export type DialPod = (pod: PodPlace, port: number) => TunnelStream;

/** A command in a pod's main container, or SFTP access to the container's files. */
export type PodSessionKind = Extract<NonNullable<SessionRequest["kind"]>, { $case: "exec" | "sftp" }>;

/**
 * Opens a session in a pod's main container. The session ends when the signal aborts. @throws CoordinatorError if the node
 * has no session with the coordinator.
 */
export type OpenInPod = (pod: PodPlace, kind: PodSessionKind, signal: AbortSignal) => Tunnel;

/** Returns a `DialPod` that uses the broker. `moved` receives the bytes of all connections. */
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

/** Returns the caller under which the broker limits sessions: all clients of a pod count as one. */
function callerOf(uid: string): string {
  return `pod ${uid}`;
}
