import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { amountText } from "../../model/amount-text.ts";
import { numberOf } from "../../model/autoscaling.ts";

/**
 * Returns the sum of the containers' requests for one resource, in cores, bytes or a count. A container without a request
 * counts with its limit. Init containers don't count, because they have ended before anything is measured.
 */
export function requestOf(template: PodTemplate | undefined, resource: string): number {
  const { container, sidecars = [] } = template ?? {};
  return [container, ...sidecars].reduce((sum, it) => {
    const { requests, limits } = it?.resources ?? {};
    return sum + numberOf(amountText(requests, resource) || amountText(limits, resource) || "0");
  }, 0);
}
