import { ServeRequest } from "@forage/proto/forage/agent/v1/agent";
import {
  CopyRequest,
  ExecRequest,
  LogsRequest,
  OperatorServiceService as operator,
  PortForwardRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { copy } from "../api/operator/copy.ts";
import { exec } from "../api/operator/exec.ts";
import { findPodOrKept } from "../api/operator/find.ts";
import { logs } from "../api/operator/logs.ts";
import { portForward } from "../api/operator/port-forward.ts";
import type { SessionsOptions } from "../api/operator/sessions.ts";
import { SharedAgentService } from "../link/agent-service.ts";
import type { SessionBroker } from "../link/session-broker.ts";
import { bytesHandlers } from "../rpc/bytes-handler.ts";
import type { ServeOptions } from "../rpc/serve.ts";
import { UnknownFields } from "../rpc/unknown-fields.ts";
import type { ConnectedNodes } from "./connected-nodes.ts";
import type { OwnMethod, ServedAt } from "./forward.ts";

export interface PodSessionsOptions extends Omit<SessionsOptions, "podUse"> {
  readonly broker: SessionBroker;
  readonly nodes: Pick<ConnectedNodes, "has">;
  /** The kinds of workloads for whose pods a component of the leader tracks the use. */
  readonly foreignKinds: readonly string[];
  /**
   * Reports whether the view is known to be older than the leader's, so that a token may have been
   * revoked.
   */
  readonly isBehind: () => boolean;
}

/** Components of the leader track the use of pods, so calls for such pods are passed on. */
const NO_POD_USE = { begin: () => () => {} };

/**
 * Returns the methods for logs, commands, copied files and forwarded ports of pods, and the method
 * by which agents open sessions. Sessions in pods whose agent is connected here are served here,
 * and continue when the leader is lost. Others are passed on.
 */
export function podSessionMethods(
  options: PodSessionsOptions,
  serving: ServeOptions,
): ReadonlyMap<string, OwnMethod> {
  const { broker } = options;
  const sessions: SessionsOptions = { ...options, podUse: NO_POD_USE };
  const served = [
    ...bytesHandlers(
      operator,
      {
        logs: (request, context) => logs(request, context, sessions),
        exec: (requests, context) => exec(requests, context, sessions),
        portForward: (requests, context) => portForward(requests, context, sessions),
        copy: (requests, context) => copy(requests, context, sessions),
      },
      { ...serving, unknownFields: new UnknownFields() },
    ),
    ...bytesHandlers(
      SharedAgentService,
      { serve: (requests, context) => broker.serve(requests, context) },
      serving,
    ),
  ];
  return new Map(
    served.map(([path, serve]) => [
      path,
      { serve, isStream: false, mayDeny: true, placeOf: (first: Buffer) => placeOf(path, first, options) },
    ]),
  );
}

function placeOf(path: string, first: Buffer, options: PodSessionsOptions): ServedAt {
  try {
    const isHere =
      path === SharedAgentService.serve.path ? isAwaited(first, options) : isOnNode(path, first, options);
    return isHere ? "here" : "leader";
  } catch {
    // The leader refuses requests that can't be decoded, and may know pods that this coordinator
    // has not read.
    return "leader";
  }
}

function isAwaited(first: Buffer, { broker }: PodSessionsOptions): boolean {
  const { frame } = ServeRequest.decode(first);
  return frame?.$case === "sessionId" && broker.awaits(frame.value);
}

/** Reports whether the agent of the pod's node is connected to this coordinator. */
function isOnNode(path: string, first: Buffer, options: PodSessionsOptions): boolean {
  const { state, clock, nodes, foreignKinds, isBehind } = options;
  const target = targetOf(path, first);
  if (target === undefined || isBehind()) return false;
  const { record } = findPodOrKept(state, target.namespace, target.pod, clock.nowMs()).pod;
  return nodes.has(record.node) && !foreignKinds.includes(record.workloadKind);
}

function targetOf(
  path: string,
  first: Buffer,
): { readonly namespace: string; readonly pod: string } | undefined {
  if (path === operator.logs.path) return LogsRequest.decode(first);
  const { frame } = decodeFirst(path, first) ?? {};
  return frame?.$case === "start" ? frame.value : undefined;
}

function decodeFirst(path: string, first: Buffer) {
  switch (path) {
    case operator.exec.path:
      return ExecRequest.decode(first);
    case operator.portForward.path:
      return PortForwardRequest.decode(first);
    case operator.copy.path:
      return CopyRequest.decode(first);
    default:
      return undefined;
  }
}
