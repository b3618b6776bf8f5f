import type { SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { FoundContainer } from "../pods/find-container.ts";
import type { FrameWriter } from "./frame-writer.ts";

/** The parts of a session that its handler uses. */
export interface Session {
  readonly podUid: string;
  readonly found: FoundContainer;
  readonly writer: FrameWriter;
  /** Aborts when the client has disconnected, the agent stops, or the session is ended from outside. */
  readonly signal: AbortSignal;
  /**
   * Reads the client's input. Every handler calls it exactly once, because a stream that is not read does not report
   * its end.
   */
  readonly readInput: (consumer: InputConsumer) => void;
}

/**
 * Consumes a client's input. Each piece is consumed before the next is read, so a slow consumer slows its client. A
 * consumer that rejects receives nothing more.
 */
export interface InputConsumer {
  data?(data: Uint8Array): Promise<void>;
  closed?(): Promise<void> | void;
  resize?(columns: number, rows: number): void;
  /** The layers of an image that the client lacks. */
  missing?(digests: readonly string[]): void;
}

export const ENDED_WELL: SessionEnd = { exitCode: 0, error: "" };
