import type { Readable, Writable } from "node:stream";

/** Everything that a command can see of the machine it runs on. Only main.ts makes the real one. */
export interface World {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly nowMs: () => number;
  readonly randomId: () => string;
  /** 0 to 1. */
  readonly random: () => number;
  /** Aborted by Ctrl-C and by signals that request the end. */
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
