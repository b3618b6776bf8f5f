import { connect } from "node:net";
import { failureOf, type ProbeAnswer, success } from "./probe-answer.ts";
import { type TimeLimit, within } from "./time-limit.ts";

/** Passes once the connection is established. Sends nothing. */
export function connectTcp(address: string, port: number, limit: TimeLimit): Promise<ProbeAnswer> {
  return within(limit, (settle) => {
    const socket = connect({ host: address, port });
    socket.once("connect", () => settle(success(`connected to port ${port}`)));
    socket.on("error", (error) => settle(failureOf(error)));
    return { release: () => socket.destroy() };
  });
}
