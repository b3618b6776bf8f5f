import { ConnectResponse, type SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../errors.ts";
import type { BytesCall } from "../rpc/bytes-handler.ts";

/**
 * The nodes whose agents are connected to this follower, which passes their streams on to the
 * leader.
 */
export class ConnectedNodes {
  readonly #streams = new Map<string, BytesCall>();

  /**
   * Adds the agent's stream once the leader has answered it. A newer stream of the node replaces
   * it. Returns a function that removes the stream.
   */
  add(node: string, stream: BytesCall): () => void {
    this.#streams.set(node, stream);
    return () => {
      if (this.#streams.get(node) === stream) this.#streams.delete(node);
    };
  }

  has(node: string): boolean {
    return this.#streams.has(node);
  }

  /**
   * Sends the node's agent a request to open a session, between the messages of the leader. @throws
   * CoordinatorError UNAVAILABLE if the agent is not connected to this coordinator, or does not
   * read.
   */
  request(node: string, request: SessionRequest): void {
    const stream = this.#streams.get(node);
    if (stream === undefined || !stream.writable)
      throw new CoordinatorError(
        "UNAVAILABLE",
        `node ${node} is not connected to this coordinator: try again`,
      );
    if (stream.writableNeedDrain)
      throw new CoordinatorError(
        "UNAVAILABLE",
        `the agent of node ${node} does not read its stream: try again`,
      );
    const message: ConnectResponse = { message: { $case: "session", value: request } };
    stream.write(Buffer.from(ConnectResponse.encode(message).finish()));
  }
}
