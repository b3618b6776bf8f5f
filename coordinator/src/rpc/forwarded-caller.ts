import type { NodeId } from "@forage/identity";
import { isName } from "@forage/identity/node-id";
import type { Metadata } from "@grpc/grpc-js";
import type { Caller } from "./caller.ts";

/**
 * The metadata key of the caller of a call that a coordinator passes on, in JSON. It is accepted
 * only on a connection with a coordinator's certificate.
 */
export const FORWARDED_CALLER_KEY = "forage-forwarded-caller";

/**
 * The metadata key of the client's address in a call that a coordinator passes on. It is accepted
 * only on a connection with a coordinator's certificate.
 */
export const FORWARDED_PEER_KEY = "forage-forwarded-peer";

const PEER = /^[0-9A-Za-z.:[\]%_-]{1,100}$/;

/**
 * Returns the client's address as sent by the coordinator that passes the call on; undefined if it
 * sends none.
 */
export function forwardedPeer(metadata: Metadata): string | undefined {
  const header = String(metadata.get(FORWARDED_PEER_KEY)[0] ?? "");
  return PEER.test(header) ? header : undefined;
}

/**
 * Encodes the caller for the leader. Returns undefined for a caller with a token, because the token
 * itself is passed on.
 */
export function encodeCaller(caller: Caller): string | undefined {
  switch (caller.type) {
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

/**
 * Returns the caller that another coordinator encoded, or that coordinator itself. An unreadable
 * value becomes an anonymous caller.
 */
export function forwardedCaller(metadata: Metadata, coordinator: string): Caller {
  const anonymous = { type: "anonymous", forwarded: true } as const;
  const header = metadata.get(FORWARDED_CALLER_KEY)[0];
  if (header === undefined)
    return {
      ...anonymous,
      coordinator,
      problem: "a coordinator may make such calls only on behalf of other callers",
    };
  const { node, serial, problem, expired, refused } = parsed(String(header));
  if (isNodeId(node) && typeof serial === "string") return { type: "node", nodeId: node, serial };
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
