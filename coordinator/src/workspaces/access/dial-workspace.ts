import type { ExecOptions } from "@forage/proto/forage/agent/v1/agent";
import type { SessionBroker, Tunnel } from "../../link/session-broker.ts";
import { TunnelStream } from "./tunnel-stream.ts";
import type { ReachableWorkspace } from "./workspace-directory.ts";

/** The node and the pod of a workspace. */
export type PodPlace = NonNullable<ReachableWorkspace["pod"]>;

/**
 * Connects to a port of a pod through its node's agent. Returns at once: a connection that fails destroys the stream with the reason.
 * Throws CoordinatorError when the node has no session with the coordinator.
 */
export type DialPod = (pod: PodPlace, port: number) => TunnelStream;

/** Runs a command in a pod's main container. The session ends with the signal. Throws CoordinatorError as `DialPod` does. */
export type ExecInPod = (pod: PodPlace, options: ExecOptions, signal: AbortSignal) => Tunnel;

export function dialThrough(broker: Pick<SessionBroker, "open">): DialPod {
  return ({ node, uid }, port) => {
    const over = new AbortController();
    const kind = { $case: "portForward", value: { port } } as const;
    const tunnel = broker.open(node, { podUid: uid, container: "", kind }, over.signal);
    return new TunnelStream(tunnel, () => over.abort());
  };
}

export function execThrough(broker: Pick<SessionBroker, "open">): ExecInPod {
  return ({ node, uid }, options, signal) =>
    broker.open(node, { podUid: uid, container: "", kind: { $case: "exec", value: options } }, signal);
}
