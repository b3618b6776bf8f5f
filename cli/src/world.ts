import type { Readable, Writable } from "node:stream";

/** The inputs and outputs of a command. Only main.ts creates the real ones. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly nowMs: () => number;
  readonly randomId: () => string;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  /** Aborts at Ctrl-C, and at signals that request the process to end. */
  readonly interrupted: AbortSignal;
}

export type InputStream = Readable & {
  readonly isTTY?: boolean;
  setRawMode?(raw: boolean): unknown;
  unref?(): unknown;
};

export type OutputStream = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};
