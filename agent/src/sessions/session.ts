import type { SessionEnd } from "@forage/proto/forage/agent/v1/agent";
import type { FoundContainer } from "../pods/pod-supervisor.ts";
import type { FrameWriter } from "./frame-writer.ts";

/** What of a session its kind needs to serve it. */
export interface Session {
  readonly podUid: string;
  readonly found: FoundContainer;
  readonly writer: FrameWriter;
  /** Aborted when the client has gone, the agent stops, or the session is ended from outside. */
  readonly signal: AbortSignal;
  /** Reads what the client sends; to be called once, by every kind: only a stream that is read tells of its end. */
  readonly readInput: (taker: InputTaker) => void;
}

/**
 * What takes a client's input. Each piece is taken before the next is read, so that a taker that is slow slows its client; one that
 * rejects gets no more.
 */
export interface InputTaker {
  data?(data: Uint8Array): Promise<void>;
  closed?(): Promise<void> | void;
  resize?(columns: number, rows: number): void;
}

export const ENDED_WELL: SessionEnd = { exitCode: 0, error: "" };
