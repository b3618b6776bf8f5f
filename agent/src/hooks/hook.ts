import type { ProbeHandler } from "../probes/probe-spec.ts";

/** The action of a lifecycle hook. It is like a probe's, without gRPC. */
export type HookAction = Exclude<ProbeHandler, { readonly type: "grpc" }>;

/** The hooks of one container. */
export interface ContainerHooks {
  readonly postStart?: HookAction;
  readonly preStop?: HookAction;
}

export type HookResult =
  | { readonly outcome: "done"; readonly message: string }
  | { readonly outcome: "failed"; readonly message: string }
  /** The signal aborted, so the hook may or may not have had an effect. */
  | { readonly outcome: "aborted" };
