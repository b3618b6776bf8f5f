import { describeSpec, inContainer } from "../../../../test/support/spec-cases.ts";

const tcp = { handler: { $case: "tcpSocket", value: { port: 80 } } };
const liveness = (fields: object) => inContainer({ livenessProbe: { ...tcp, ...fields } });
const handler = ($case: string, value: object) => liveness({ handler: { $case, value } });
const hook = (postStart: object) => inContainer({ lifecycle: { postStart } });
const at = "container.liveness_probe";

describeSpec("container_service", "probes", [
  ["a socket", liveness({ periodSeconds: 5, failureThreshold: 2 }), []],
  ["no handler", inContainer({ livenessProbe: {} }), [at]],
  ["port 0", handler("tcpSocket", {}), [`${at}.tcp_socket.port`]],
  [
    "HTTP",
    handler("httpGet", { port: 80, scheme: "HTTPS", path: "/a?b", httpHeaders: [{ name: "A", value: "b" }] }),
    [],
  ],
  ["HTTP without a port", handler("httpGet", { path: "/" }), [`${at}.http_get.port`]],
  ["HTTP with a relative path", handler("httpGet", { port: 80, path: "a" }), [`${at}.http_get.path`]],
  [
    "HTTP with a path of two lines",
    handler("httpGet", { port: 80, path: "/a\r\nX: y" }),
    [`${at}.http_get.path`],
  ],
  [
    "HTTP with an unknown scheme",
    handler("httpGet", { port: 80, scheme: "https" }),
    [`${at}.http_get.scheme`],
  ],
  [
    "HTTP with a broken header",
    handler("httpGet", { port: 80, httpHeaders: [{ name: "A B", value: "c\r\nd" }] }),
    [`${at}.http_get.http_headers[0].name`, `${at}.http_get.http_headers[0].value`],
  ],
  [
    "33 headers",
    handler("httpGet", { port: 80, httpHeaders: Array.from({ length: 33 }, () => ({ name: "A" })) }),
    [`${at}.http_get.http_headers`],
  ],
  ["a command", handler("exec", { command: ["true", ""] }), []],
  ["no command", handler("exec", {}), [`${at}.exec.command`]],
  ["an empty command", handler("exec", { command: [""] }), [`${at}.exec.command`]],
  ["a NUL in a command", handler("exec", { command: ["a", "\0"] }), [`${at}.exec.command[1]`]],
  ["gRPC", handler("grpc", { port: 9090, service: "my.Service" }), []],
  ["gRPC above 65535", handler("grpc", { port: 70_000 }), [`${at}.grpc.port`]],
  ["gRPC with a service of two lines", handler("grpc", { port: 1, service: "a\nb" }), [`${at}.grpc.service`]],
  ["a period of more than a week", liveness({ periodSeconds: 604_801 }), [`${at}.period_seconds`]],
  [
    "a delay of more than a week",
    liveness({ initialDelaySeconds: 604_801 }),
    [`${at}.initial_delay_seconds`],
  ],
  ["a time-out of more than a week", liveness({ timeoutSeconds: 604_801 }), [`${at}.timeout_seconds`]],
  ["a threshold beyond 32 bits", liveness({ failureThreshold: 2_147_483_648 }), [`${at}.failure_threshold`]],
  [
    "successes beyond 32 bits",
    inContainer({ readinessProbe: { ...tcp, successThreshold: 2_147_483_648 } }),
    ["container.readiness_probe.success_threshold"],
  ],
  ["two successes of liveness", liveness({ successThreshold: 2 }), [`${at}.success_threshold`]],
  [
    "two successes of startup",
    inContainer({ startupProbe: { ...tcp, successThreshold: 2 } }),
    ["container.startup_probe.success_threshold"],
  ],
  ["two successes of readiness", inContainer({ readinessProbe: { ...tcp, successThreshold: 2 } }), []],
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
