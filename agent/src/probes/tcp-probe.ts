import { connect } from "node:net";
import { failureOf, type ProbeAnswer, success } from "./probe-answer.ts";
import { type TimeLimit, within } from "./time-limit.ts";

/** Passes once the connection stands; nothing is sent. */
export function connectTcp(address: string, port: number, limit: TimeLimit): Promise<ProbeAnswer> {
  return within(limit, (tell) => {
    const socket = connect({ host: address, port });
    socket.once("connect", () => tell(success(`connected to port ${port}`)));
    socket.on("error", (error) => tell(failureOf(error)));
    return { release: () => socket.destroy() };
  });
}
