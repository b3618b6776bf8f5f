import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import type { IpRange } from "../../ip/ip-range.ts";
import type { Caller } from "../../rpc/caller.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NamespaceRules } from "../namespaces/namespace-rules.ts";
import { validateApply } from "../validate/apply.ts";
import { checkDependsOn } from "../validate/depends-on.ts";
import { checkLoadBalancerIps } from "../validate/load-balancer-ips.ts";
import { checkNodePorts, type PortRange } from "../validate/node-ports.ts";
import { checkPriorityClasses } from "../validate/priority-classes.ts";
import { checkResourceNames } from "../validate/resource-names.ts";
import type { BundleChoices } from "./bundle.ts";

export interface CheckOptions {
  readonly namespaceRules: NamespaceRules;
  readonly state: ClusterView;
  /** The range of node ports that services may request. */
  readonly nodePorts: PortRange;
  /** The pool of addresses for services of type LoadBalancer. */
  readonly loadBalancerIps: readonly IpRange[];
}

/**
 * Makes every check that can reject an apply: of the request itself, and against the current state. @throws
 * CoordinatorError INVALID, UNIMPLEMENTED.
 */
export function validateAgainstState(
  request: ApplyResourcesRequest,
  caller: Caller,
  { state, nodePorts, loadBalancerIps, namespaceRules }: CheckOptions,
  choices: Pick<BundleChoices, "keepOthers"> = {},
): void {
  validateApply(request);
  namespaceRules.validateAgainstState(request, caller);
  checkPriorityClasses(request, (name) => state.objects.priorityOf(name) !== undefined);
  checkNodePorts(request, nodePorts, state);
  checkLoadBalancerIps(request, loadBalancerIps, state);
  checkResourceNames(request, state.resources(request.namespace));
  checkDependsOn(request, state.resources(request.namespace), choices);
}
