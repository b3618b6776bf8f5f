export type Mapping = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The two spellings of the field for a container service. */
const SERVICES = ["container_service", "containerService"];

/**
 * Removes a `scaling` without replicas, which means the default of one. JSON messages can't
 * distinguish 0 replicas from an unset number, but the manifest can.
 */
export function withDefaultReplicas(resource: unknown): unknown {
  if (!isMapping(resource)) return resource;
  const name = SERVICES.find((each) => isMapping(resource[each]));
  const service = name === undefined ? undefined : resource[name];
  if (name === undefined || !isMapping(service) || !isMapping(service.scaling)) return resource;
  const { replicas, autoscaling, ...unknown } = service.scaling;
  const isDefault = (replicas ?? autoscaling ?? undefined) === undefined && Object.keys(unknown).length === 0;
  if (!isDefault) return resource;
  const { scaling: _, ...rest } = service;
  return { ...resource, [name]: rest };
}

/** The fields that refer to a priority class, in both spellings. */
const POD_CONFIGS = ["pod_config", "podConfig"];
const CLASS_NAMES = ["priority_class_name", "priorityClassName"];

/** Returns the resource without its priority class if it is one of the given classes. */
export function withoutPriorityClass(resource: unknown, classes: ReadonlySet<string>): unknown {
  if (!isMapping(resource) || classes.size === 0) return resource;
  return mapEach(resource, (spec) =>
    mapEach(spec, (config, name) => {
      if (!POD_CONFIGS.includes(name)) return config;
      const kept = Object.entries(config).filter(
        ([key, value]) => !(CLASS_NAMES.includes(key) && classes.has(String(value))),
      );
      return Object.fromEntries(kept);
    }),
  );
}

/** Replaces all values that are mappings. */
function mapEach(mapping: Mapping, change: (value: Mapping, key: string) => Mapping): Mapping {
  const entries = Object.entries(mapping);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, isMapping(value) ? change(value, key) : value]),
  );
}

/**
 * Returns the mapping with its own keys in camelCase, as in JSON messages. Nested keys stay
 * unchanged.
 */
export function withJsonNames(mapping: Mapping): Mapping {
  return Object.fromEntries(
    Object.entries(mapping).map(([name, value]) => [
      name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
}
