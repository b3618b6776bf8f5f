import type { Container } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { amountOf } from "../syntax/quantity.ts";

export interface LocatedContainer {
  readonly container: Container;
  readonly field: Field;
}

/** Resources with the same name in the scheduler and in the API. */
const PLAIN = [
  ["cpu", "cpu"],
  ["memory", "memory"],
  ["ephemeral-storage", "ephemeral_storage"],
] as const;

/**
 * Checks the sum of the requests of containers that run at the same time. Each may be within the scheduler's limits while
 * the sum is not. A limit without a request counts as the request.
 */
export function checkResourceSums(containers: readonly LocatedContainer[]): void {
  const sums = new Map<string, bigint>();
  const add = (resource: string, text: string, field: Field): void => {
    const { nano } = amountOf(resource, text);
    // Invalid amounts are reported by another check.
    if (nano === undefined) return;
    const sum = (sums.get(resource) ?? 0n) + nano;
    const { problem } = amountOf(resource, `${sum}n`);
    if (problem === undefined) sums.set(resource, sum);
    else field.invalid(`with the pod's other containers ${problem}: the sum of all is what the pod requests`);
  };
  for (const { container, field } of containers) {
    const { requests, limits } = container.resources ?? {};
    for (const [resource, name] of PLAIN) {
      const of = (list: typeof requests): string =>
        (resource === "ephemeral-storage" ? list?.ephemeralStorage : list?.[resource]) ?? "";
      if (of(requests) !== "") add(resource, of(requests), field.at("requests").at(name));
      else if (of(limits) !== "") add(resource, of(limits), field.at("limits").at(name));
    }
    const asked = Object.entries(requests?.extended ?? {});
    for (const [resource, text] of asked)
      add(resource, text, field.at("requests").at("extended").key(resource));
    for (const [resource, text] of Object.entries(limits?.extended ?? {}))
      if (requests?.extended[resource] === undefined)
        add(resource, text, field.at("limits").at("extended").key(resource));
  }
}
