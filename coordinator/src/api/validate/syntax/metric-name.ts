import { labelKeyProblem } from "./names.ts";
import { controlProblem, lengthProblem } from "./text.ts";

/**
 * Validates the name of a custom metric: a name as in Prometheus, or that of an extended resource (`vendor.example/thing`).
 */
export function metricNameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (/[\s%]/.test(name)) return "must not contain spaces or '%'";
  if (name.includes("/") && labelKeyProblem(name) !== undefined)
    return "must not contain '/' unless it names a resource such as vendor.example/thing";
  return lengthProblem(name, 253) ?? controlProblem(name);
}
