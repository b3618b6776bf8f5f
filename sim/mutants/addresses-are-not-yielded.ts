import {
  type AddressPlanInput,
  planAddresses as real,
} from "../../agent/src/load-balancer/plan-addresses.ts";

export * from "../../agent/src/load-balancer/plan-addresses.ts";

/** Keeps the addresses of load balancers even if another host answers for them. */
export function planAddresses(input: AddressPlanInput): ReturnType<typeof real> {
  return real({ ...input, yielded: new Set() });
}
