import type { Caller as IdentifiedCaller } from "@forage/identity/authorize";

/** Who is calling, as proven by a certificate or a token; never by what a message says. */
export type Caller = IdentifiedCaller & {
  /** For an anonymous caller that showed something: what was wrong with it. */
  readonly problem?: string;
};

/** What a handler knows of its call besides the request. */
export interface CallContext {
  readonly method: string;
  readonly caller: Caller;
  /** `address:port`. */
  readonly peer: string;
  /** Aborts when the client goes away, its deadline passes or the server stops. */
  readonly signal: AbortSignal;
}
