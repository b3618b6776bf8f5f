import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { Container } from "@forage/proto/forest/v1/forage";

/** The first field that is set and that this agent would have to ignore. Nothing is run half. */
export function unsupportedField(template: PodTemplate): string | undefined {
  if (template.initContainers.length > 0) return "init_containers";
  if (template.volumes.length > 0) return "volumes";
  const { podConfig } = template;
  if (podConfig?.hostNetwork) return "pod_config.host_network";
  if (podConfig?.dnsConfig !== undefined) return "pod_config.dns_config";
  if (podConfig?.securityContext !== undefined) return "pod_config.security_context";
  if ((podConfig?.runtimeClassName ?? "") !== "") return "pod_config.runtime_class_name";
  if ((podConfig?.imagePullSecrets ?? []).length > 0) return "pod_config.image_pull_secrets";
  for (const container of [template.container, ...template.sidecars]) {
    const field = container === undefined ? undefined : unsupportedContainerField(container);
    if (field !== undefined) return `${field} of container ${container?.name}`;
  }
  return undefined;
}

function unsupportedContainerField(container: Container): string | undefined {
  if (container.volumeMounts.length > 0) return "volume_mounts";
  if (container.livenessProbe !== undefined) return "liveness_probe";
  if (container.readinessProbe !== undefined) return "readiness_probe";
  if (container.startupProbe !== undefined) return "startup_probe";
  if (container.lifecycle !== undefined) return "lifecycle";
  if (container.securityContext !== undefined) return "security_context";
  if (container.stdin) return "stdin";
  if (container.tty) return "tty";
  const { requests, limits } = container.resources ?? {};
  if (Object.keys({ ...requests?.extended, ...limits?.extended }).length > 0) return "resources.extended";
  return undefined;
}
