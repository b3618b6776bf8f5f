import type { HttpGetProbe, Probe } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { headerNameProblem, headerValueProblem, requestTargetProblem } from "../syntax/http.ts";
import { countProblem, portProblem, waitSecondsProblem } from "../syntax/numbers.ts";
import { choiceProblem, controlProblem, lengthProblem } from "../syntax/text.ts";
import { validateCommand } from "./arguments.ts";

export type ProbeKind = "liveness" | "readiness" | "startup";

const MAX_HEADERS = 32;
/** The limit of a gRPC service's name in bytes. */
const MAX_SERVICE_BYTES = 256;

export function validateProbe(probe: Probe, kind: ProbeKind, field: Field): void {
  validateHandler(probe.handler, field);
  field.at("initial_delay_seconds").check(waitSecondsProblem(probe.initialDelaySeconds));
  field.at("period_seconds").check(waitSecondsProblem(probe.periodSeconds));
  field.at("timeout_seconds").check(waitSecondsProblem(probe.timeoutSeconds));
  field.at("success_threshold").check(countProblem(probe.successThreshold));
  field.at("failure_threshold").check(countProblem(probe.failureThreshold));
  if (kind !== "readiness" && probe.successThreshold > 1)
    field.at("success_threshold").invalid(`must be 1 for a ${kind} probe`);
}

export function validateHttpGet({ path, port, scheme, httpHeaders }: HttpGetProbe, field: Field): void {
  if (path !== "") field.at("path").check(requestTargetProblem(path));
  field.at("port").check(portProblem(port));
  field.at("scheme").check(choiceProblem(scheme, ["HTTP", "HTTPS"]));
  if (httpHeaders.length > MAX_HEADERS) field.at("http_headers").invalid(`must be at most ${MAX_HEADERS}`);
  for (const [index, { name, value }] of httpHeaders.entries()) {
    const at = field.at("http_headers").item(index);
    at.at("name").check(headerNameProblem(name));
    at.at("value").check(headerValueProblem(value));
  }
}

function validateHandler(handler: Probe["handler"], field: Field): void {
  switch (handler?.$case) {
    case "httpGet":
      validateHttpGet(handler.value, field.at("http_get"));
      return;
    case "tcpSocket":
      field.at("tcp_socket").at("port").check(portProblem(handler.value.port));
      return;
    case "exec":
      validateCommand(handler.value.command, field.at("exec").at("command"));
      return;
    case "grpc": {
      const { port, service } = handler.value;
      field.at("grpc").at("port").check(portProblem(port));
      field
        .at("grpc")
        .at("service")
        .check(controlProblem(service) ?? lengthProblem(service, MAX_SERVICE_BYTES));
      return;
    }
    case undefined:
      field.invalid("must have one of http_get, tcp_socket, exec, grpc");
      return;
    default:
      handler satisfies never;
  }
}
