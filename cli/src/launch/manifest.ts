import type { Amount, Bind, Constraint, Environment, Mapping, Publication, RouteTarget } from "./parse.ts";

/** Everything that `forage run` deploys, as read from its command line. */
export interface Launch {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  readonly replicas: number;
  /** The command; empty means the image's entrypoint. */
  readonly command: readonly string[];
  /** The arguments; empty means those of the image. */
  readonly args: readonly string[];
  readonly environment: readonly Environment[];
  readonly binds: readonly Bind[];
  readonly publications: readonly Publication[];
  readonly serviceType: string;
  readonly routes: readonly RouteTarget[];
  readonly tls: boolean;
  readonly cpu: Amount | undefined;
  readonly memory: Amount | undefined;
  readonly constraints: readonly Constraint[];
  /** The HTTP path of the readiness probe on the first published port. */
  readonly healthPath: string | undefined;
  /** The names of registry credentials. */
  readonly registries: readonly string[];
}

/** The label of all resources created by `forage run`. Its value is the name of the run. */
export const RUN_LABEL = "run";

/** Returns the equivalent manifest for `forage apply`. */
export function launchManifest(launch: Launch): Mapping {
  const { name, namespace, labels, publications } = launch;
  return {
    namespace,
    labels: { [RUN_LABEL]: name, ...labels },
    resources: [
      { name, container_service: workload(launch) },
      ...(publications.length === 0 ? [] : [{ name, service: service(launch) }]),
      ...routes(launch),
    ],
  };
}

function workload(launch: Launch): Mapping {
  const { binds, replicas } = launch;
  return filled({
    scaling: { replicas },
    container: container(launch),
    volumes: binds.map(({ source }, index) => ({ name: volumeName(index), ...source })),
    pod_config: podConfig(launch),
  });
}

function container(launch: Launch): Mapping {
  const { name, image, command, args, environment, binds, publications } = launch;
  return filled({
    name,
    image,
    command,
    args,
    env: environment.map(({ name: variable, source }) => ({ name: variable, ...source })),
    ports: distinctPorts(publications).map(({ target, protocol }) =>
      filled({ name: portName(target, protocol), container_port: target, protocol: named(protocol) }),
    ),
    resources: resources(launch),
    volume_mounts: binds.map(({ path, readOnly }, index) =>
      filled({ name: volumeName(index), mount_path: path, read_only: readOnly || undefined }),
    ),
    readiness_probe: readiness(launch),
  });
}

/**
 * Returns the distinct container ports. One container port can be published under several ports of
 * the service.
 */
function distinctPorts(publications: readonly Publication[]): readonly Publication[] {
  const byTarget = new Map(publications.map((each) => [portName(each.target, each.protocol), each]));
  return [...byTarget.values()];
}

function resources({ cpu, memory }: Launch): Mapping | undefined {
  const requests = filled({ cpu: cpu?.request, memory: memory?.request });
  const limits = filled({ cpu: cpu?.limit, memory: memory?.limit });
  const both = filled({ requests, limits });
  return Object.keys(both).length === 0 ? undefined : both;
}

function readiness({ healthPath, publications }: Launch): Mapping | undefined {
  if (healthPath === undefined) return undefined;
  return { http_get: { path: healthPath, port: publications[0]?.target } };
}

function podConfig({ constraints, registries }: Launch): Mapping {
  const equal = constraints.filter(({ operator, values }) => operator === "In" && values.length === 1);
  const others = constraints.filter((each) => !equal.includes(each));
  const expressions = others.map(({ key, operator, values }) => filled({ key, operator, values }));
  return filled({
    node_selector: Object.fromEntries(equal.map(({ key, values: [value] }) => [key, value])),
    affinity:
      expressions.length === 0
        ? undefined
        : { node_affinity: { required: { terms: [{ match_expressions: expressions }] } } },
    image_pull_secrets: registries,
  });
}

function service({ name, publications, serviceType }: Launch): Mapping {
  return filled({
    target: name,
    type: serviceType === "ClusterIP" ? undefined : serviceType,
    ports: publications.map(({ port, target, protocol }) =>
      filled({
        name: portName(port, protocol),
        port,
        target_port: target === port ? undefined : target,
        protocol: named(protocol),
      }),
    ),
  });
}

/** Returns one route for all hostnames, or one for each path if their paths differ. */
function routes({ name, routes: targets, tls }: Launch): Mapping[] {
  const byPath = new Map<string, string[]>();
  for (const { hostname, path } of targets) byPath.set(path, [...(byPath.get(path) ?? []), hostname]);
  return [...byPath].map(([path, hostnames], index) => ({
    name: index === 0 ? name : `${name}-${index + 1}`,
    route: filled({
      target_service: name,
      hostnames,
      rules: path === "/" ? [] : [{ matches: [{ path: { type: "PathPrefix", value: path } }] }],
      tls: tls ? { mode: "Terminate" } : undefined,
    }),
  }));
}

function volumeName(index: number): string {
  return `volume-${index + 1}`;
}

function portName(port: number, protocol: string): string {
  return `${protocol.toLowerCase()}-${port}`;
}

function named(protocol: string): string | undefined {
  return protocol === "TCP" ? undefined : protocol;
}

/** Returns the fields that have values. */
function filled(fields: Mapping): Mapping {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
