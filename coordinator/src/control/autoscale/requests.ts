import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { amountText } from "../../model/amount-text.ts";
import { numberOf } from "../../model/autoscaling.ts";

/**
 * What the containers of a pod ask for together of one resource: cores, bytes or a count. A missing request equals its limit.
 * Init containers are over by the time that anything is measured.
 */
export function requestOf(template: PodTemplate | undefined, resource: string): number {
  const { container, sidecars = [] } = template ?? {};
  return [container, ...sidecars].reduce((sum, it) => {
    const { requests, limits } = it?.resources ?? {};
    return sum + numberOf(amountText(requests, resource) || amountText(limits, resource) || "0");
  }, 0);
}
