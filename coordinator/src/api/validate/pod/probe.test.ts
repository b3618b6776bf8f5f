import { describeSpec, inContainer } from "../../../../test/support/spec-cases.ts";

const TCP = { handler: { $case: "tcpSocket", value: { port: 80 } } };
const liveness = (fields: object) => inContainer({ livenessProbe: { ...TCP, ...fields } });
const handler = ($case: string, value: object) => liveness({ handler: { $case, value } });
const hook = (postStart: object) => inContainer({ lifecycle: { postStart } });
const AT = "container.liveness_probe";

describeSpec("container_service", "probes", [
  ["a socket", liveness({ periodSeconds: 5, failureThreshold: 2 }), []],
  ["no handler", inContainer({ livenessProbe: {} }), [AT]],
  ["port 0", handler("tcpSocket", {}), [`${AT}.tcp_socket.port`]],
  [
    "HTTP",
    handler("httpGet", { port: 80, scheme: "HTTPS", path: "/a?b", httpHeaders: [{ name: "A", value: "b" }] }),
    [],
  ],
  ["HTTP without a port", handler("httpGet", { path: "/" }), [`${AT}.http_get.port`]],
  ["HTTP with a relative path", handler("httpGet", { port: 80, path: "a" }), [`${AT}.http_get.path`]],
  [
    "HTTP with a path of two lines",
    handler("httpGet", { port: 80, path: "/a\r\nX: y" }),
    [`${AT}.http_get.path`],
  ],
  [
    "HTTP with an unknown scheme",
    handler("httpGet", { port: 80, scheme: "https" }),
    [`${AT}.http_get.scheme`],
  ],
  [
    "HTTP with a broken header",
    handler("httpGet", { port: 80, httpHeaders: [{ name: "A B", value: "c\r\nd" }] }),
    [`${AT}.http_get.http_headers[0].name`, `${AT}.http_get.http_headers[0].value`],
  ],
  [
    "33 headers",
    handler("httpGet", { port: 80, httpHeaders: Array.from({ length: 33 }, () => ({ name: "A" })) }),
    [`${AT}.http_get.http_headers`],
  ],
  ["a command", handler("exec", { command: ["true", ""] }), []],
  ["no command", handler("exec", {}), [`${AT}.exec.command`]],
  ["an empty command", handler("exec", { command: [""] }), [`${AT}.exec.command`]],
  ["a NUL in a command", handler("exec", { command: ["a", "\0"] }), [`${AT}.exec.command[1]`]],
  ["gRPC", handler("grpc", { port: 9090, service: "my.Service" }), []],
  ["gRPC above 65535", handler("grpc", { port: 70_000 }), [`${AT}.grpc.port`]],
  ["gRPC with a service of two lines", handler("grpc", { port: 1, service: "a\nb" }), [`${AT}.grpc.service`]],
  ["a period of more than a week", liveness({ periodSeconds: 604_801 }), [`${AT}.period_seconds`]],
  [
    "a delay of more than a week",
    liveness({ initialDelaySeconds: 604_801 }),
    [`${AT}.initial_delay_seconds`],
  ],
  ["a time-out of more than a week", liveness({ timeoutSeconds: 604_801 }), [`${AT}.timeout_seconds`]],
  ["a threshold beyond 32 bits", liveness({ failureThreshold: 2_147_483_648 }), [`${AT}.failure_threshold`]],
  [
    "successes beyond 32 bits",
    inContainer({ readinessProbe: { ...TCP, successThreshold: 2_147_483_648 } }),
    ["container.readiness_probe.success_threshold"],
  ],
  ["two successes of liveness", liveness({ successThreshold: 2 }), [`${AT}.success_threshold`]],
  [
    "two successes of startup",
    inContainer({ startupProbe: { ...TCP, successThreshold: 2 } }),
    ["container.startup_probe.success_threshold"],
  ],
  ["two successes of readiness", inContainer({ readinessProbe: { ...TCP, successThreshold: 2 } }), []],
]);

describeSpec("container_service", "hooks", [
  ["none", inContainer({ lifecycle: {} }), []],
  ["no action", hook({}), ["container.lifecycle.post_start"]],
  ["a command", hook({ action: { $case: "exec", value: { command: ["true"] } } }), []],
  [
    "no command",
    hook({ action: { $case: "exec", value: {} } }),
    ["container.lifecycle.post_start.exec.command"],
  ],
  [
    "HTTP without a port",
    hook({ action: { $case: "httpGet", value: {} } }),
    ["container.lifecycle.post_start.http_get.port"],
  ],
  [
    "a socket without a port",
    inContainer({ lifecycle: { preStop: { action: { $case: "tcpSocket", value: {} } } } }),
    ["container.lifecycle.pre_stop.tcp_socket.port"],
  ],
]);
