import type { ApplyResourcesRequest, ForageResource } from "@forage/proto/forest/v1/forage";
import { validateApply } from "../../src/api/validate/apply.ts";
import { CoordinatorError, type FieldViolation } from "../../src/errors.ts";

/** The result of validating a request. */
export interface RolloutUpdate {
  readonly code: "OK" | "INVALID";
  readonly message: string;
  readonly violations: readonly FieldViolation[];
}

export function verdictOn(request: ApplyResourcesRequest): RolloutUpdate {
  try {
    validateApply(request);
    return { code: "OK", message: "", violations: [] };
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    if (error.code !== "INVALID") throw error;
    return { code: error.code, message: error.message, violations: error.violations };
  }
}

export function verdictOnResource(resource: ForageResource): RolloutUpdate {
  return verdictOn({ applyId: "a1", namespace: "shop", resources: [resource], labels: {} });
}
