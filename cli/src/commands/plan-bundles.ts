import type { PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { explainViolations } from "../manifest/explain-violations.ts";

/**
 * Returns the plan of an apply for each bundle. Problems that the coordinator finds are reported at
 * their position in the manifest.
 */
export async function planBundles(
  coordinator: Coordinator,
  bundles: readonly Bundle[],
): Promise<PlanResponse[]> {
  const plans: PlanResponse[] = [];
  for (const bundle of bundles) {
    const { namespace } = bundle.request;
    try {
      plans.push(await coordinator.call(operator.plan, { namespace, bundle: bundle.request }));
    } catch (error) {
      throw error instanceof CallError && error.violations.length > 0
        ? explainViolations(bundle, error)
        : error;
    }
  }
  return plans;
}
