import type { ContainerPort } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { portNameProblem } from "../syntax/names.ts";
import { portProblem } from "../syntax/numbers.ts";
import { choiceProblem } from "../syntax/text.ts";

/** The limit of ports, because each uses a port of the host. */
const MAX_PORTS = 100;

/** Validates the ports of one container. The uniqueness of names in the pod is checked elsewhere. */
export function validatePorts(ports: readonly ContainerPort[], field: Field): void {
  if (ports.length > MAX_PORTS) field.invalid(`must be at most ${MAX_PORTS}, but ${ports.length} were given`);
  const numbers = new Set<string>();
  for (const [index, { name, containerPort, protocol }] of ports.entries()) {
    const at = field.item(index);
    at.at("container_port").check(portProblem(containerPort));
    at.at("protocol").check(choiceProblem(protocol, ["TCP", "UDP", "SCTP"]));
    if (name !== "") at.at("name").check(portNameProblem(name));
    const number = `${containerPort}/${protocol === "" ? "TCP" : protocol}`;
    if (numbers.has(number)) at.at("container_port").invalid("is listed twice with the same protocol");
    numbers.add(number);
  }
}
