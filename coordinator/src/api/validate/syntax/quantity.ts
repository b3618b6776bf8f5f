import { parseAmount, parseQuantity, SchedulerError } from "@forage/scheduler";

/** A parsed amount of a resource, or a message that explains why it is invalid. */
export type ParsedAmount =
  | { readonly nano: bigint; readonly problem?: undefined }
  | { readonly nano?: undefined; readonly problem: string };

/**
 * Parses Kubernetes' notation of quantities. `resource` is the scheduler's name of the resource; amounts beyond the
 * scheduler's limits are invalid.
 */
export function amountOf(resource: string, text: string): ParsedAmount {
  try {
    const nano = parseQuantity(text);
    if (nano < 0n) return { problem: "must not be negative" };
    parseAmount(resource, text);
    return { nano };
  } catch (error) {
    if (!(error instanceof SchedulerError)) throw error;
    if (error.code === "quantity_out_of_range") return { problem: "is more than any host has" };
    return {
      problem: `"${text.slice(0, 40).toWellFormed()}" is not a quantity such as 250m, 1.5 or 128Mi`,
    };
  }
}

export function quantityProblem(resource: string, text: string): string | undefined {
  return amountOf(resource, text).problem;
}
