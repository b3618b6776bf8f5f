import type { DescMethod, FileRegistry } from "@bufbuild/protobuf";
import { describeWire } from "./wire.ts";

type DescType = FileRegistry extends Iterable<infer Type> ? Type : never;

/** The services that agents call on coordinators. */
const AGENT_SERVICES = [
  "forage.agent.v1.EnrollmentService",
  "forage.agent.v1.AgentService",
  "forage.workspaces.v1.WorkspaceNodeService",
] as const;

/** Describes, as describeWire does, what agents and coordinators must agree on: their services and all types in these. */
export function describeAgentWire(registry: FileRegistry): string[] {
  const names = new Set<string>(AGENT_SERVICES);
  for (const service of AGENT_SERVICES) {
    const found = registry.getService(service);
    if (found === undefined) throw new Error(`there is no service ${service}`);
    for (const { input, output } of found.methods) for (const type of [input, output]) reach(type, names);
  }
  return describeWire(registry).filter((line) => names.has(elementOf(line)));
}

function reach(type: DescMethod["input"] | DescType, names: Set<string>): void {
  if (names.has(type.typeName)) return;
  names.add(type.typeName);
  if (type.kind !== "message") return;
  for (const { message, enum: values } of type.fields)
    for (const each of [message, values]) if (each !== undefined) reach(each, names);
}

/** Returns the type that a line belongs to. */
function elementOf(line: string): string {
  const [what, name = ""] = line.split(" ", 2);
  return what === "rpc" ? name.slice(0, name.lastIndexOf(".")) : name;
}
