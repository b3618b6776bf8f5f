/**
 * Messages of the operator service in JSON form, with the fields that pages read. Empty fields are
 * omitted.
 */

export interface Cause {
  readonly reason?: string;
  readonly message?: string;
  readonly details?: readonly string[];
  readonly advice?: string;
}

export interface FleetEvent {
  readonly sequence?: string;
  readonly namespace?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly firstAt?: string;
  readonly lastAt?: string;
  readonly count?: number;
  readonly node?: string;
}

export interface WhyAnswer {
  readonly summary?: string;
  readonly healthy?: boolean;
  readonly causes?: readonly Cause[];
  readonly events?: readonly FleetEvent[];
}

export interface Ended {
  readonly exitCode?: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly finishedAt?: string;
}

export interface ContainerState {
  readonly name?: string;
  readonly image?: string;
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: { readonly startedAt?: string };
  readonly terminated?: Ended;
  readonly lastTermination?: Ended;
  readonly restartCount?: number;
  readonly ready?: boolean;
  readonly init?: boolean;
}

export interface WirePod {
  readonly uid?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly node?: string;
  readonly workloadKind?: string;
  readonly workloadName?: string;
  readonly createdAt?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly templateHash?: string;
  readonly keptUntil?: string;
  readonly status?: {
    readonly podIp?: string;
    readonly containers?: readonly ContainerState[];
    readonly hostPorts?: readonly { readonly hostPort?: number; readonly containerPort?: number }[];
  };
}

export interface PodList {
  readonly pods?: readonly WirePod[];
  readonly kept?: readonly WirePod[];
}

export interface RolloutAnswer {
  readonly rolloutId?: string;
  readonly createdAt?: string;
  readonly finished?: boolean;
  readonly resources?: readonly {
    readonly kind?: string;
    readonly name?: string;
    readonly action?: string;
    readonly status?: string;
    readonly message?: string;
    readonly now?: string;
    readonly finishedAt?: string;
  }[];
}

export interface Revision {
  readonly number?: number;
  readonly createdAt?: string;
  readonly changeCause?: string;
  readonly good?: boolean;
  readonly inForce?: boolean;
  readonly templateHash?: string;
  readonly pods?: number;
  readonly spec?: unknown;
}

export interface RouteCondition {
  readonly type?: string;
  readonly status?: boolean;
  readonly reason?: string;
  readonly message?: string;
}

export interface WireResource {
  readonly namespace?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
  readonly message?: string;
  readonly owner?: string;
  readonly virtualIps?: readonly string[];
  readonly loadBalancerIps?: readonly string[];
  readonly nodePorts?: readonly { readonly port?: number; readonly nodePort?: number }[];
  readonly readyEndpoints?: number;
  readonly route?: {
    readonly gateway?: string;
    readonly hostnames?: readonly {
      readonly hostname?: string;
      readonly tls?: string;
      readonly certificate?: string;
      readonly certificateExpiresAt?: string;
    }[];
    readonly conditions?: readonly RouteCondition[];
    readonly gateways?: readonly {
      readonly node?: string;
      readonly ready?: boolean;
      readonly inForce?: boolean;
      readonly message?: string;
    }[];
  };
  readonly job?: {
    readonly completions?: number;
    readonly active?: number;
    readonly succeeded?: number;
    readonly failed?: number;
    readonly condition?: string;
    readonly message?: string;
    readonly startedAt?: string;
    readonly finishedAt?: string;
  };
  readonly cronJob?: {
    readonly schedule?: string;
    readonly timezone?: string;
    readonly suspended?: boolean;
    readonly active?: readonly string[];
    readonly lastScheduledAt?: string;
    readonly lastSuccessfulAt?: string;
    readonly nextAt?: string;
  };
  readonly autoscaling?: {
    readonly minReplicas?: number;
    readonly maxReplicas?: number;
    readonly currentReplicas?: number;
    readonly desiredReplicas?: number;
    readonly reason?: string;
    readonly metrics?: readonly {
      readonly name?: string;
      readonly targetType?: string;
      readonly target?: string;
      readonly value?: string;
      readonly replicas?: number;
      readonly message?: string;
    }[];
    readonly conditions?: readonly RouteCondition[];
    readonly lastScaledAt?: string;
    readonly lastScaleReason?: string;
  };
}

export interface ResourceList {
  readonly resources?: readonly WireResource[];
}

export interface PlannedResource {
  readonly kind?: string;
  readonly name?: string;
  readonly action?: string;
  readonly changes?: readonly { readonly path?: string; readonly before?: string; readonly after?: string }[];
  readonly steps?: readonly {
    readonly round?: number;
    readonly step?: string;
    readonly count?: number;
    readonly pod?: string;
    readonly why?: string;
    readonly detail?: string;
    readonly placements?: readonly {
      readonly node?: string;
      readonly pods?: number;
      readonly why?: string;
    }[];
  }[];
  readonly notes?: readonly string[];
}

export interface PlanAnswer {
  readonly resources?: readonly PlannedResource[];
  readonly changes?: boolean;
}

export interface WhatIfAnswer {
  readonly safe?: boolean;
  readonly notes?: readonly string[];
  readonly workloads?: readonly {
    readonly namespace?: string;
    readonly kind?: string;
    readonly name?: string;
    readonly readyBefore?: number;
    readonly readyLowest?: number;
    readonly readyAfter?: number;
    readonly minimum?: number;
    readonly came?: readonly { readonly node?: string; readonly pods?: number }[];
    readonly waiting?: readonly { readonly pods?: number; readonly why?: string }[];
  }[];
  readonly resources?: readonly {
    readonly resource?: string;
    readonly percentBefore?: number;
    readonly percentAfter?: number;
  }[];
}

export interface WireNode {
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly joinedAt?: string;
  readonly certificateEnds?: string;
  readonly lastSeenAt?: string;
  readonly taints?: readonly { readonly key?: string; readonly value?: string; readonly effect?: string }[];
  readonly drain?: { readonly state?: string; readonly message?: string; readonly startedAt?: string };
  readonly report?: {
    readonly os?: string;
    readonly kernel?: string;
    readonly containerdVersion?: string;
    readonly address?: string;
    readonly allocatable?: Readonly<Record<string, string>>;
    readonly conditions?: readonly RouteCondition[];
  };
  readonly gateway?: {
    readonly name?: string;
    readonly ready?: boolean;
    readonly message?: string;
    readonly proxyVersion?: string;
  };
}

/** An object with its revealed values. */
export interface WireObject {
  readonly secret?: { readonly data?: Readonly<Record<string, string>> };
  readonly registryCredential?: { readonly password?: string };
}
