import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { amountText } from "../../model/amount-text.ts";
import { numberOf } from "../../model/autoscaling.ts";

/**
 * Returns the requests of a pod's containers for one resource together: cores, bytes or a count. A missing request equals its
 * limit. Init containers have ended before anything is measured.
 */
export function requestOf(template: PodTemplate | undefined, resource: string): number {
  const { container, sidecars = [] } = template ?? {};
  return [container, ...sidecars].reduce((sum, it) => {
    const { requests, limits } = it?.resources ?? {};
    return sum + numberOf(amountText(requests, resource) || amountText(limits, resource) || "0");
  }, 0);
}
