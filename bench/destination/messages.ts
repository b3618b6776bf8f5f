/** The benchmark's messages to the server and the client, which are separate processes, and their answers. */
export interface ToServer {
  readonly type: "change";
  readonly pod: number;
  readonly ready: boolean;
}

export type FromServer =
  | {
      readonly type: "up";
      readonly port: number;
      /** The process whose cost is measured. Default: the answering process. */
      readonly pid?: number;
    }
  | { readonly type: "changed"; readonly atNs: string };

export type ToClient =
  | {
      readonly type: "open";
      readonly port: number;
      readonly streams: number;
      readonly connections: number;
      readonly path: string;
    }
  /** Waits until every stream has received this number of messages. */
  | { readonly type: "await"; readonly messages: number };

/** The time at which each stream received its message, on the clock that all processes share. */
export type FromClient =
  | { readonly type: "arrived"; readonly startedNs: string; readonly atNs: readonly string[] }
  | { readonly type: "ended"; readonly status: string };
