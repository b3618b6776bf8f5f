import type {
  Container,
  ExecProbe,
  HttpGetProbe,
  Lifecycle,
  LifecycleHandler,
  Probe,
  TcpSocketProbe,
} from "@forage/proto/forest/v1/forage";
import type { ContainerHooks, HookAction } from "../hooks/hook.ts";
import { type ContainerProbes, type ProbeHandler, type ProbeKind, probeSpec } from "../probes/probe-spec.ts";

const PORT_MAX = 65_535;

/** Parses the container's probes. Returns undefined if it has none. */
export function parseProbes(container: Container): ContainerProbes | undefined {
  const given: Readonly<Record<ProbeKind, Probe | undefined>> = {
    startup: container.startupProbe,
    liveness: container.livenessProbe,
    readiness: container.readinessProbe,
  };
  const probes: { [Kind in ProbeKind]?: ReturnType<typeof probeSpec> } = {};
  for (const kind of ["startup", "liveness", "readiness"] as const) {
    const probe = given[kind];
    if (probe !== undefined) probes[kind] = probeSpec(kind, handlerOf(kind, probe), probe);
  }
  return Object.keys(probes).length > 0 ? probes : undefined;
}

/** Parses the container's hooks. Returns undefined if it has none. */
export function parseHooks(lifecycle: Lifecycle | undefined): ContainerHooks | undefined {
  const { postStart, preStop } = lifecycle ?? {};
  if (postStart === undefined && preStop === undefined) return undefined;
  return {
    ...(postStart && { postStart: hookOf("post_start", postStart) }),
    ...(preStop && { preStop: hookOf("pre_stop", preStop) }),
  };
}

function handlerOf(kind: ProbeKind, { handler }: Probe): ProbeHandler {
  switch (handler?.$case) {
    case "httpGet":
    case "tcpSocket":
    case "exec":
      return actionOf(handler);
    case "grpc":
      return { type: "grpc", port: handler.value.port, service: handler.value.service };
    case undefined:
      throw new Error(`${kind} probe: it has no handler`);
    default:
      return handler satisfies never;
  }
}

function hookOf(hook: string, { action }: LifecycleHandler): HookAction {
  if (action === undefined) throw new Error(`${hook}: it has no action`);
  const parsed = actionOf(action);
  if (parsed.type === "exec") {
    if (parsed.command.length === 0) throw new Error(`${hook}: exec: the command is empty`);
  } else if (!(parsed.port >= 1 && parsed.port <= PORT_MAX)) {
    throw new Error(`${hook}: ${parsed.type}: ${parsed.port} is not a port`);
  }
  return parsed;
}

type Action =
  | { readonly $case: "exec"; readonly value: ExecProbe }
  | { readonly $case: "httpGet"; readonly value: HttpGetProbe }
  | { readonly $case: "tcpSocket"; readonly value: TcpSocketProbe };

function actionOf(action: Action): HookAction {
  switch (action.$case) {
    case "exec":
      return { type: "exec", command: action.value.command };
    case "tcpSocket":
      return { type: "tcp", port: action.value.port };
    case "httpGet": {
      const { path, port, scheme, httpHeaders } = action.value;
      return { type: "http", scheme: schemeOf(scheme), port, path: path || "/", headers: httpHeaders };
    }
    default:
      return action satisfies never;
  }
}

function schemeOf(scheme: string): "HTTP" | "HTTPS" {
  if (scheme === "" || scheme === "HTTP") return "HTTP";
  if (scheme === "HTTPS") return scheme;
  throw new Error(`http_get: ${JSON.stringify(scheme)} is not a scheme: HTTP or HTTPS`);
}
