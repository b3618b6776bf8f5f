/** Part of a manifest, with the field names of the contract. */
export type Mapping = Readonly<Record<string, unknown>>;

export interface ServicePort {
  readonly port: number;
  readonly target: number;
  readonly protocol: "TCP" | "UDP" | "SCTP";
  /** Whether the port is published to clients outside the cluster. */
  readonly published: boolean;
}

export interface Mount {
  /** The source of the volume, as in a manifest: `{ pvc: … }`. */
  readonly source: Mapping;
  readonly path: string;
  readonly subPath?: string;
  readonly readOnly: boolean;
}

/** Collects the fields of one service of a Compose file, in the form of a manifest. */
export class ServiceDraft {
  readonly name: string;
  readonly container: Record<string, unknown> = {};
  readonly security: Record<string, unknown> = {};
  readonly pod: Record<string, unknown> = {};
  readonly podSecurity: Record<string, unknown> = {};
  readonly dns: Record<string, unknown> = {};
  readonly requests: Record<string, unknown> = {};
  readonly limits: Record<string, unknown> = {};
  readonly annotations: Record<string, string> = {};
  readonly variables: { readonly name: string; readonly value: string }[] = [];
  readonly ports: ServicePort[] = [];
  readonly mounts: Mount[] = [];
  readonly dependencies: string[] = [];
  readonly constraints: { readonly key: string; readonly value: string; readonly equal: boolean }[] = [];
  readonly routes: { readonly hostname: string; readonly path: string }[] = [];
  replicas: number | undefined;
  update: Mapping | undefined;
  serviceType: string | undefined;
  tls = false;

  constructor(name: string) {
    this.name = name;
  }

  /**
   * Returns the resources of the manifest: the workload, its service if it has ports, and its route
   * if it has hostnames.
   */
  resources(): Mapping[] {
    return [
      { name: this.name, container_service: this.#workload() },
      ...(this.ports.length === 0 ? [] : [{ name: this.name, service: this.#service() }]),
      ...(this.routes.length === 0 ? [] : [{ name: this.name, route: this.#route() }]),
    ];
  }

  #workload(): Mapping {
    const [equal, others] = [true, false].map((want) =>
      this.constraints.filter((each) => each.equal === want),
    );
    const expressions = others?.map(({ key, value }) => ({ key, operator: "NotIn", values: [value] })) ?? [];
    const targets = new Map(
      this.ports.map((port) => [`${port.protocol.toLowerCase()}-${port.target}`, port]),
    );
    const { length: dependencies } = this.dependencies;
    return filled({
      scaling: this.replicas === undefined ? undefined : { replicas: this.replicas },
      container: filled({
        name: this.name,
        ...this.container,
        env: this.variables,
        ports: [...targets].map(([name, { target, protocol }]) =>
          filled({ name, container_port: target, protocol: named(protocol) }),
        ),
        resources: filled({ requests: this.requests, limits: this.limits }),
        volume_mounts: this.mounts.map(({ path, subPath, readOnly }, index) =>
          filled({
            name: `volume-${index + 1}`,
            mount_path: path,
            sub_path: subPath,
            read_only: readOnly ? true : undefined,
          }),
        ),
        security_context: this.security,
      }),
      volumes: this.mounts.map(({ source }, index) => ({ name: `volume-${index + 1}`, ...source })),
      update_strategy: this.update,
      pod_config: filled({
        ...this.pod,
        dns_config: this.dns,
        node_selector: Object.fromEntries(equal?.map(({ key, value }) => [key, value]) ?? []),
        affinity:
          expressions.length === 0
            ? undefined
            : { node_affinity: { required: { terms: [{ match_expressions: expressions }] } } },
        security_context: this.podSecurity,
        annotations: {
          ...this.annotations,
          ...(dependencies === 0 ? {} : { "forage.dev/depends-on": this.dependencies.join(", ") }),
        },
      }),
    });
  }

  #service(): Mapping {
    const ports = new Map(this.ports.map((port) => [`${port.protocol.toLowerCase()}-${port.port}`, port]));
    const isPublished = this.ports.some(({ published }) => published);
    return filled({
      target: this.name,
      type: this.serviceType ?? (isPublished ? "LoadBalancer" : undefined),
      ports: [...ports].map(([name, { port, target, protocol }]) =>
        filled({
          name,
          port,
          target_port: target === port ? undefined : target,
          protocol: named(protocol),
        }),
      ),
    });
  }

  #route(): Mapping {
    const paths = [...new Set(this.routes.map(({ path }) => path))].filter((path) => path !== "/");
    return filled({
      target_service: this.name,
      hostnames: [...new Set(this.routes.map(({ hostname }) => hostname))],
      rules:
        paths.length === 0
          ? []
          : [{ matches: paths.map((value) => ({ path: { type: "PathPrefix", value } })) }],
      tls: this.tls ? { mode: "Terminate" } : undefined,
    });
  }
}

/** Returns the fields that have values. */
export function filled(fields: Mapping): Mapping {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function named(protocol: string): string | undefined {
  return protocol === "TCP" ? undefined : protocol;
}
