import { CliError } from "../errors.ts";
import { parseReference } from "./reference.ts";

/** Returns the name of the pod in an operand. Throws USAGE for other kinds. */
export function podName(target: string): string {
  const reference = parseReference(target);
  if (reference === undefined || reference.what === "pod") return reference?.name ?? target;
  throw new CliError("USAGE", `"${target}" is not a pod: name one of those that \`forage get pods\` lists`);
}
