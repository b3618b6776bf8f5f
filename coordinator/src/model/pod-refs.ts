import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { EnvVar, Volume } from "@forage/proto/forest/v1/forage";
import type { ObjectKind, ObjectName } from "./object-name.ts";

/** An object to which a pod refers. */
export interface PodRef extends ObjectName {
  /** Whether an environment variable has a value of the object, which is fixed when a container starts. */
  readonly env: boolean;
  /** Whether another field refers to the object and follows its changes. */
  readonly live: boolean;
}

/**
 * The annotation that, with the value "false", keeps pods from being replaced when a secret or config map of their
 * environment changes.
 */
export const RESTART_ON_CHANGE = "forage.dev/restart-on-change";

/** Returns the objects to which pods of the template refer by name in their namespace, each once. Pure. */
export function refsOf(namespace: string, template: PodTemplate | undefined): PodRef[] {
  if (template === undefined) return [];
  const { container, sidecars, initContainers, volumes, podConfig } = template;
  const refs = new Map<string, PodRef>();
  const add = (kind: ObjectKind, name: string, env: boolean): void => {
    const key = `${kind}/${name}`;
    const known = refs.get(key);
    refs.set(key, {
      namespace: kind === "priority_class" ? "" : namespace,
      kind,
      name,
      env: env || (known?.env ?? false),
      live: !env || (known?.live ?? false),
    });
  };
  const containers = [container, ...sidecars, ...initContainers].filter((c) => c !== undefined);
  for (const { env } of containers) for (const variable of env) addEnv(variable, add);
  for (const volume of volumes) addVolume(volume, add);
  for (const name of podConfig?.imagePullSecrets ?? []) add("registry_credential", name, false);
  const className = podConfig?.priorityClassName ?? "";
  if (className !== "") add("priority_class", className, false);
  return [...refs.values()];
}

type Add = (kind: ObjectKind, name: string, env: boolean) => void;

function addEnv({ valueSource }: EnvVar, add: Add): void {
  if (valueSource?.$case === "secretRef") add("secret", valueSource.value.secretName, true);
  if (valueSource?.$case === "configRef") add("config_map", valueSource.value.configName, true);
}

function addVolume({ source }: Volume, add: Add): void {
  if (source?.$case === "secret") add("secret", source.value.secretName, false);
  if (source?.$case === "configMap") add("config_map", source.value.configMapName, false);
  if (source?.$case === "pvc") add("claim", source.value.claimName, false);
}

/** Returns the name under which `PodTemplate.object_versions` pins the object. */
export function pinName({ kind, name }: Pick<ObjectName, "kind" | "name">): string {
  return `${kind}/${name}`;
}
