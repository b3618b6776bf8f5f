import type { NodeId } from "@forage/identity";
import { isName } from "@forage/identity/node-id";
import type { Metadata } from "@grpc/grpc-js";
import type { Caller } from "./caller.ts";

/** The caller of a call that a coordinator passes on, in JSON. Only a connection with a coordinator's certificate may send it. */
export const FORWARDED_CALLER_KEY = "forage-forwarded-caller";

/** The address of the client whose call a coordinator passes on. Only a connection with a coordinator's certificate may send it. */
export const FORWARDED_PEER_KEY = "forage-forwarded-peer";

const PEER = /^[0-9A-Za-z.:[\]%_-]{1,100}$/;

/** Returns the address of the client as the coordinator that passes the call on describes it. Undefined: it doesn't. */
export function forwardedPeer(metadata: Metadata): string | undefined {
  const header = String(metadata.get(FORWARDED_PEER_KEY)[0] ?? "");
  return PEER.test(header) ? header : undefined;
}

/** Describes the caller to the coordinator that leads. A caller with a token is described by the token itself. */
export function encodeCaller(caller: Caller): string | undefined {
  switch (caller.kind) {
    case "user":
      return undefined;
    case "node":
      return JSON.stringify({ node: caller.nodeId, serial: caller.serial });
    case "anonymous":
      return JSON.stringify({
        problem: caller.problem,
        expired: caller.expiredNode,
        refused: caller.refusedNode,
      });
    default:
      return caller satisfies never;
  }
}

/** Returns the caller that another coordinator describes, or that coordinator. A description that can't be read is anonymous. */
export function forwardedCaller(metadata: Metadata, coordinator: string): Caller {
  const anonymous = { kind: "anonymous", forwarded: true } as const;
  const header = metadata.get(FORWARDED_CALLER_KEY)[0];
  if (header === undefined)
    return { ...anonymous, coordinator, problem: "a coordinator makes such calls for others only" };
  const { node, serial, problem, expired, refused } = parsed(String(header));
  if (isNodeId(node) && typeof serial === "string") return { kind: "node", nodeId: node, serial };
  const { nodeId, serial: expiredSerial } = isObject(expired) ? expired : {};
  return {
    ...anonymous,
    ...(typeof problem === "string" && { problem }),
    ...(isNodeId(nodeId) &&
      typeof expiredSerial === "string" && { expiredNode: { nodeId, serial: expiredSerial } }),
    ...(isNodeId(refused) && { refusedNode: refused }),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function isNodeId(value: unknown): value is NodeId {
  return typeof value === "string" && isName(value);
}
