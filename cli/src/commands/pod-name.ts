import { CliError } from "../errors.ts";
import { parseReference } from "./reference.ts";

/** Returns the pod that an operand names. Refuses other kinds of objects. */
export function podName(target: string): string {
  const reference = parseReference(target);
  if (reference === undefined || reference.what === "pod") return reference?.name ?? target;
  throw new CliError("USAGE", `"${target}" is no pod: name one of those that \`forage get pods\` lists`);
}
