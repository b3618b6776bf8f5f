import type { IncomingMessage } from "node:http";
import type { Writable } from "node:stream";
import { messageOf } from "@forage/common/message-of";
import type { ForwardRules, RequestOrigin } from "../../forwarding/forward-headers.ts";
import { forwardRequest, refuse, statusOf } from "../../forwarding/forward-request.ts";
import { forwardUpgrade, refuseUpgrade } from "../../forwarding/forward-upgrade.ts";
import type { OtherHosts } from "../other-hosts.ts";
import { connectToLeader } from "./connect-to-leader.ts";
import type { PassCount } from "./pass-counts.ts";
import type { PassHttpOptions } from "./pass-http.ts";
import type { PassedConnection } from "./passed-connection.ts";

export interface PassHostsOptions extends Pick<PassHttpOptions, "client"> {
  /** Reports whether the leader serves the host name. */
  readonly owns: (host: string | undefined) => boolean;
  readonly count: PassCount;
}

/** The most requests in progress, the same as the leader's own limit. */
const MAX_OPEN = 256;

/** The leader checks the cookies, and removes its own before it forwards a request. */
const RULES: ForwardRules = {
  target: "the leader",
  hiddenHeaders: [],
  withoutOwnCookies: (header) => header,
  setsOwnCookie: () => false,
};

/**
 * Passes requests to some host names on to the leader, each over its own connection. Content of
 * these hosts is never served as a route of this coordinator.
 */
export function passHosts({ owns, client, count }: PassHostsOptions): OtherHosts {
  const open = new Set<() => void>();
  /** Calls `run` with a connection that ends with the visitor's connection. */
  const withConnection = async (
    request: IncomingMessage,
    visitor: Writable,
    arrival: RequestOrigin,
    run: (connection: PassedConnection) => Promise<void>,
    fail: (status: number, message: string) => void,
  ): Promise<void> => {
    if (open.size >= MAX_OPEN) {
      count.refused++;
      return fail(503, "too many requests are passed on to the leader: try again later");
    }
    const gone = new AbortController();
    let connection: PassedConnection | undefined;
    const leave = (): void => {
      gone.abort();
      connection?.destroy();
    };
    open.add(leave);
    count.open++;
    // Pipelining by Node adds the other listeners of a connection.
    visitor.setMaxListeners(visitor.getMaxListeners() + 1);
    visitor.once("close", leave);
    try {
      const isEncrypted = arrival.proto === "https";
      connection = await connectToLeader(client, "http", request.socket, isEncrypted, gone.signal);
      count.passed++;
    } catch (error) {
      count.refused++;
      fail(statusOf(error), messageOf(error));
    }
    try {
      if (connection !== undefined && !visitor.destroyed) await run(connection);
    } finally {
      open.delete(leave);
      count.open--;
      visitor.off("close", leave);
      connection?.destroy();
    }
  };
  return {
    owns,
    serve: (request, response, arrival, allowLong) =>
      withConnection(
        request,
        response,
        arrival,
        (connection) => {
          allowLong();
          return forwardRequest(request, response, { createConnection: () => connection }, arrival, RULES);
        },
        (status, message) => refuse(response, status, message),
      ),
    upgrade: (request, visitor, head, arrival) =>
      withConnection(
        request,
        visitor,
        arrival,
        (connection) => forwardUpgrade(request, visitor, head, arrival, RULES, () => connection),
        (status, message) => refuseUpgrade(visitor, status, message),
      ),
    close: () => {
      for (const leave of open) leave();
    },
  };
}
