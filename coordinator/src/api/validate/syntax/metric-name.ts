import { labelKeyProblem } from "./names.ts";
import { controlProblem, lengthProblem } from "./text.ts";

/** Checks the name of a custom metric: a name as in Prometheus, or that of a counted resource (`vendor.example/thing`). */
export function metricNameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (/[\s%]/.test(name)) return "must not hold spaces or '%'";
  if (name.includes("/") && labelKeyProblem(name) !== undefined)
    return "must not hold '/' unless it names a resource such as vendor.example/thing";
  return lengthProblem(name, 253) ?? controlProblem(name);
}
