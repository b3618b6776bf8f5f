import type { LinkErrorCode } from "./link-error.ts";

/** The state of the agent's connection to the coordinator. */
export interface LinkState {
  readonly kind: "joining" | "connecting" | "connected" | "failed";
  readonly sinceMs: number;
  /** The error's code. Set if failed. */
  readonly code?: LinkErrorCode;
  readonly message?: string;
  /** The expiry of the node's certificate, once there is one. */
  readonly certificateEndsMs?: number;
}
