import type { ServicePort, ServiceSpec } from "@forage/proto/forest/v1/forage";
import { requestedIpsProblem } from "../../../control/addresses/requested-ips.ts";
import { readAnnotations } from "../../../destination/hints/annotations.ts";
import { AFFINITY_ANNOTATION, LOAD_BALANCER_IP_ANNOTATION } from "../../../service-network/service-state.ts";
import type { Field } from "../field.ts";
import { validateAnnotations } from "../labels.ts";
import { validateInlineRoute } from "../route/route.ts";
import { dnsLabelProblem } from "../syntax/names.ts";
import { optionalPortProblem, portProblem } from "../syntax/numbers.ts";
import { choiceProblem } from "../syntax/text.ts";

const TYPES = ["ClusterIP", "NodePort", "LoadBalancer", "Headless"];
/** The types whose ports are open on every node. */
const TYPES_WITH_NODE_PORTS = ["NodePort", "LoadBalancer"];
/** The limit of ports, because each requires rules on every node. */
const MAX_PORTS = 100;

export function validateService(spec: ServiceSpec, field: Field): void {
  field.at("target").check(dnsLabelProblem(spec.target));
  field.at("type").check(choiceProblem(spec.type, TYPES));
  field.at("session_affinity").check(choiceProblem(spec.sessionAffinity, ["None", "ClientIP"]));
  if (spec.ports.length === 0 && spec.type !== "Headless") field.at("ports").invalid("must not be empty");
  if (spec.ports.length > MAX_PORTS) field.at("ports").invalid(`must be at most ${MAX_PORTS}`);
  validatePorts(spec, field.at("ports"));
  validateAnnotations(spec.annotations, field.at("annotations"));
  if (spec.type === "Headless" && spec.sessionAffinity === "ClientIP")
    field
      .at("session_affinity")
      .invalid("must be None for Headless: its clients choose their pods themselves");
  const seconds = spec.annotations[AFFINITY_ANNOTATION];
  if (seconds !== undefined && spec.sessionAffinity !== "ClientIP")
    field.at("annotations").key(AFFINITY_ANNOTATION).invalid("needs session_affinity ClientIP");
  if (seconds !== undefined && !isAffinityTime(seconds))
    field
      .at("annotations")
      .key(AFFINITY_ANNOTATION)
      .invalid("must be a whole number of seconds from 1 to 86400");
  validateRequestedIps(spec, field.at("annotations").key(LOAD_BALANCER_IP_ANNOTATION));
  const { [AFFINITY_ANNOTATION]: _, [LOAD_BALANCER_IP_ANNOTATION]: __, ...hints } = spec.annotations;
  for (const { key, problem } of readAnnotations(hints).problems)
    field.at("annotations").key(key).invalid(problem);
  if (spec.inlineRoute !== undefined) {
    if (spec.ports.length === 0) field.at("inline_route").invalid("requires a port of the service");
    validateInlineRoute(spec.inlineRoute, field.at("inline_route"));
  }
}

function validateRequestedIps({ type, annotations }: ServiceSpec, field: Field): void {
  const text = annotations[LOAD_BALANCER_IP_ANNOTATION];
  if (text === undefined) return;
  if (type !== "LoadBalancer") field.invalid("is only for services of type LoadBalancer");
  field.check(requestedIpsProblem(text));
}

/** Reports whether the text is a valid affinity time-out within Kubernetes' limits. */
function isAffinityTime(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 86_400;
}

function validatePorts({ ports, type }: ServiceSpec, field: Field): void {
  const names = new Set<string>();
  const numbers = new Set<string>();
  const nodePorts = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const at = field.item(index);
    at.at("port").check(portProblem(port.port));
    at.at("target_port").check(optionalPortProblem(port.targetPort));
    at.at("protocol").check(protocolProblem(port.protocol));
    if (port.name !== "") at.at("name").check(dnsLabelProblem(port.name));
    else if (ports.length > 1) at.at("name").invalid("must be set when there are several ports");
    if (port.name !== "" && names.has(port.name)) at.at("name").invalid(`"${port.name}" is used twice`);
    names.add(port.name);
    if (numbers.has(numberOf(port, port.port)))
      at.at("port").invalid(`${numberOf(port, port.port)} is listed twice`);
    numbers.add(numberOf(port, port.port));
    if (port.nodePort !== 0) checkNodePort(port, type, nodePorts, at.at("node_port"));
  }
}

function checkNodePort(port: ServicePort, type: string, taken: Set<string>, field: Field): void {
  field.check(portProblem(port.nodePort));
  if (!TYPES_WITH_NODE_PORTS.includes(type))
    field.invalid("is only for services of type NodePort or LoadBalancer");
  const number = numberOf(port, port.nodePort);
  if (taken.has(number)) field.invalid(`${number} is listed twice`);
  taken.add(number);
}

function numberOf({ protocol }: ServicePort, number: number): string {
  return `${number}/${protocol === "" ? "TCP" : protocol}`;
}

function protocolProblem(protocol: string): string | undefined {
  return choiceProblem(protocol, ["TCP", "UDP", "SCTP"]);
}
