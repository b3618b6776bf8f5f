import type { Random } from "@forage/common/random";
import type { Draft } from "./fields.ts";

/** Makes a message valid whose fields are valid individually but may contradict each other. */
export function repair(type: string, draft: Draft, random: Random): Draft {
  repairs[type.replace("forest.v1.", "")]?.(draft, random);
  return draft;
}

type Repair = (draft: Draft, random: Random) => void;

const repairs: Readonly<Record<string, Repair>> = {
  ContainerServiceSpec: repairService,
  JobSpec: repairRun,
  CronJobSpec: repairRun,
  ResourceRequirements: (requirements) => {
    // The same amount is allowed for all resources, including devices.
    if (requirements.requests !== undefined) requirements.limits = requirements.requests;
  },
  Container: (container) => {
    container.env = list(container.env).map((variable, index) => ({ ...variable, name: `V${index}` }));
    container.volumeMounts = list(container.volumeMounts).map((mount, index) => {
      return { ...mount, mountPath: `/mnt/${index}` };
    });
    for (const probe of ["livenessProbe", "startupProbe"])
      if (container[probe] !== undefined) message(container[probe]).successThreshold = 1;
  },
  SecretVolume: (volume) => uniquePaths(volume),
  ConfigMapVolume: (volume) => uniquePaths(volume),
  Capabilities: (capabilities) => {
    if (capabilities.add !== undefined) capabilities.drop = ["ALL"];
  },
  AutoscalingPolicy: (policy) => {
    if (Number(policy.minReplicas ?? 0) > Number(policy.maxReplicas)) policy.minReplicas = 1;
    policy.customMetrics = list(policy.customMetrics).map((metric, index) => ({
      ...metric,
      name: `m${index}`,
    }));
  },
  UpdateStrategy: (strategy) => {
    if (strategy.type === "Recreate") strategy.rollingUpdate = undefined;
  },
  RollingUpdateConfig: (config) => {
    if (config.maxUnavailable === "0") config.maxSurge = "1";
  },
  JobConfig: (config) => {
    if (config.completionMode === "Indexed") config.completions = 3;
  },
  Toleration: (toleration) => {
    if (toleration.operator === "Exists") toleration.value = "";
    if (toleration.effect !== "NoExecute") toleration.tolerationSeconds = 0n;
  },
  NodeSelectorTerm: (term, random) => {
    const named = { key: "metadata.name", operator: random.pick(["In", "NotIn"]), values: ["node-1"] };
    term.matchFields = list(term.matchFields).map(() => named);
    term.matchExpressions = list(term.matchExpressions).map((expression) => {
      return random.chance(0.3)
        ? { key: "cores", operator: random.pick(["Gt", "Lt"]), values: ["7"] }
        : expression;
    });
  },
  LabelSelectorRequirement: (requirement, random) => {
    if (random.chance(0.5)) {
      requirement.operator = random.pick(["Exists", "DoesNotExist"]);
      requirement.values = [];
    }
  },
  PodConfig: (config, random) => {
    config.topologySpreadConstraints = list(config.topologySpreadConstraints).slice(0, 1);
    const servers = message(config.dnsConfig ?? {}).nameservers;
    if (servers !== undefined && random.chance(0.5)) config.dnsPolicy = "None";
  },
  ServiceSpec: (service) => {
    const nodePorts = service.type === "NodePort" || service.type === "LoadBalancer";
    service.ports = list(service.ports).map((port, index) => {
      return { ...port, name: `p${index}`, port: 80 + index, nodePort: nodePorts ? 30_080 + index : 0 };
    });
    if (service.type === "Headless") service.sessionAffinity = "None";
    const inline = service.inlineRoute;
    if (inline !== undefined) repairRoute(message(inline));
  },
  InlineRoute: repairRoute,
  RouteSpec: repairRoute,
  RouteRule: (rule) => {
    const seen = new Set<unknown>();
    const filters = list(rule.filters).filter((filter) => {
      const kind = caseOf(filter.filter);
      const last = seen.has(kind);
      seen.add(kind);
      return !last;
    });
    const redirects = filters.some((filter) => caseOf(filter.filter) === "requestRedirect");
    rule.filters = filters.filter((filter) => !redirects || caseOf(filter.filter) !== "urlRewrite");
    if (redirects) rule.backends = [];
  },
  RouteMatch: (match) => {
    for (const [name, key] of [
      ["headers", "name"],
      ["queryParams", "name"],
    ] as const)
      match[name] = list(match[name]).map((item, index) => ({ ...item, [key]: `X-${index}` }));
  },
  UrlRewrite: (rewrite) => {
    if (rewrite.path !== undefined) message(rewrite.path).type = "Exact";
  },
  RequestHeaderModifier: uniqueHeaders,
  ResponseHeaderModifier: uniqueHeaders,
};

/** Removes shares of requests if there are no requests. */
function repairService(spec: Draft): void {
  repairPod(spec);
  const policy = message(message(spec.scaling ?? {}).autoscaling ?? {});
  if (!policy.targetCpuUtilizationPercent && !policy.targetMemoryUtilizationPercent) return;
  const resources = { requests: { cpu: "1", memory: "1Gi" } };
  spec.container = { ...message(spec.container), resources };
  spec.sidecars = list(spec.sidecars).map((container) => ({ ...container, resources }));
}

function repairRun(spec: Draft): void {
  const pod = spec.podConfig;
  if (pod !== undefined) message(pod).restartPolicy = "";
  repairPod(spec);
}

/** Makes names unique in a pod, and mounts refer to its volumes. */
function repairPod(spec: Draft): void {
  spec.volumes = list(spec.volumes).map((volume, index) => ({ ...volume, name: `v${index}` }));
  const volumes = list(spec.volumes).map((volume) => volume.name);
  // In the host's network no two containers may have the same port.
  let nextPort = 8000;
  const rename = (container: Draft, name: string): Draft => ({
    ...container,
    name,
    ports: list(container.ports).map((port, index) => {
      return { ...port, name: `${name.slice(0, 6)}-p${index}`, containerPort: nextPort++ };
    }),
    volumeMounts: volumes.length === 0 ? [] : list(container.volumeMounts),
  });
  spec.container = rename(message(spec.container), "main");
  spec.sidecars = list(spec.sidecars).map((c, index) => rename(c, `side-${index}`));
  spec.initContainers = list(spec.initContainers).map((c, index) => {
    const none = { livenessProbe: undefined, readinessProbe: undefined, startupProbe: undefined };
    return { ...rename(c, `init-${index}`), ...none, lifecycle: undefined };
  });
}

function repairRoute(route: Draft): void {
  const hostnames = route.hostnames;
  if (Array.isArray(hostnames)) route.hostnames = [...new Set(hostnames)];
}

function uniquePaths(volume: Draft): void {
  volume.items = list(volume.items).map((item, index) => ({ ...item, path: `f${index}` }));
}

function uniqueHeaders(modifier: Draft): void {
  if (modifier.remove !== undefined) modifier.remove = ["X-C"];
}

function list(value: unknown): Draft[] {
  return Array.isArray(value) ? (value as Draft[]) : [];
}

function message(value: unknown): Draft {
  return value as Draft;
}

function caseOf(oneof: unknown): unknown {
  return (oneof as { $case: string } | undefined)?.$case;
}
