import type { ProbeHandler } from "../probes/probe-spec.ts";

/** The action of a lifecycle hook: the same as a probe's, except for gRPC. */
export type HookAction = Exclude<ProbeHandler, { readonly type: "grpc" }>;

/** One container's hooks. */
export interface ContainerHooks {
  readonly postStart?: HookAction;
  readonly preStop?: HookAction;
}

export type HookResult =
  | { readonly outcome: "done"; readonly message: string }
  | { readonly outcome: "failed"; readonly message: string }
  /** The signal aborted: the hook may or may not have had its effect. */
  | { readonly outcome: "aborted" };
