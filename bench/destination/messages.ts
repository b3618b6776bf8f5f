/** The benchmark's messages to the server and the client, each a process of its own, and their answers. */
export interface ToServer {
  readonly kind: "change";
  readonly pod: number;
  readonly ready: boolean;
}

export type FromServer =
  | {
      readonly kind: "up";
      readonly port: number;
      /** The process whose cost counts. Default: the one that answers. */
      readonly pid?: number;
    }
  | { readonly kind: "changed"; readonly atNs: string };

export type ToClient =
  | {
      readonly kind: "open";
      readonly port: number;
      readonly streams: number;
      readonly connections: number;
      readonly path: string;
    }
  /** Waits until every stream has had so many messages. */
  | { readonly kind: "await"; readonly messages: number };

/** The time at which each stream had its message, on the clock that all processes share. */
export type FromClient =
  | { readonly kind: "arrived"; readonly startedNs: string; readonly atNs: readonly string[] }
  | { readonly kind: "ended"; readonly status: string };
