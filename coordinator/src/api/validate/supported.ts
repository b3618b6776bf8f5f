/** Of a field: any value, or only those (as text) that say what happens anyway. */
export type Support = "all" | readonly string[];

type MessageSupport = Readonly<Record<string, Support>>;

/** How this version acts on a field of forest.v1; undefined: not at all. */
export function supportOf(message: string, field: string): Support | undefined {
  const fields = supported[message];
  return fields !== undefined && Object.hasOwn(fields, field) ? fields[field] : undefined;
}

/**
 * Fields of each message that this version acts on. Whatever else is set is refused by its path, so nothing that was
 * asked for is ever quietly left out. A message without fields here may be given as long as it says nothing.
 */
const supported: Readonly<Record<string, MessageSupport>> = {
  "forest.v1.ForageResource": all("name", "container_service", "service"),
  "forest.v1.ContainerServiceSpec": all("scaling", "container", "pod_config", "update_strategy"),
  "forest.v1.ScalingPolicy": all("replicas"),
  "forest.v1.UpdateStrategy": { type: ["RollingUpdate"], ...all("rolling_update") },
  // What the workload plan does, see control/workload/plan.ts.
  "forest.v1.RollingUpdateConfig": { max_unavailable: ["25%"], max_surge: ["25%"] },
  "forest.v1.Container": all(
    "name",
    "image",
    "command",
    "args",
    "working_dir",
    "env",
    "ports",
    "resources",
    "lifecycle",
    "security_context",
    "image_pull_policy",
  ),
  "forest.v1.EnvVar": all("name", "value"),
  "forest.v1.ContainerPort": all("name", "container_port", "protocol"),
  "forest.v1.ResourceRequirements": all("requests", "limits"),
  "forest.v1.ResourceList": all("cpu", "memory"),
  "forest.v1.Lifecycle": {},
  "forest.v1.ContainerSecurityContext": all("capabilities"),
  "forest.v1.Capabilities": {},
  "forest.v1.PodConfig": {
    restart_policy: ["Always"],
    dns_policy: ["ClusterFirst"],
    ...all("labels", "termination_grace_period_seconds", "dns_config", "security_context"),
    ...all("node_selector", "tolerations", "affinity", "topology_spread_constraints"),
  },
  "forest.v1.PodDnsConfig": {},
  "forest.v1.PodSecurityContext": {},
  "forest.v1.Affinity": all("node_affinity", "pod_affinity", "pod_anti_affinity"),
  "forest.v1.Toleration": all("key", "operator", "value", "effect", "toleration_seconds"),
  "forest.v1.NodeAffinity": all("preferred", "required"),
  "forest.v1.PreferredSchedulingTerm": all("weight", "preference"),
  "forest.v1.NodeSelector": all("terms"),
  "forest.v1.NodeSelectorTerm": all("match_expressions", "match_fields"),
  "forest.v1.NodeSelectorRequirement": all("key", "operator", "values"),
  "forest.v1.PodAffinity": all("preferred", "required"),
  "forest.v1.PodAntiAffinity": all("preferred", "required"),
  "forest.v1.WeightedPodAffinityTerm": all("weight", "term"),
  "forest.v1.PodAffinityTerm": all("label_selector", "topology_key", "namespaces"),
  "forest.v1.LabelSelector": all("match_labels", "match_expressions"),
  "forest.v1.LabelSelectorRequirement": all("key", "operator", "values"),
  "forest.v1.TopologySpreadConstraint": all(
    "max_skew",
    "topology_key",
    "when_unsatisfiable",
    "label_selector",
  ),
  "forest.v1.ServiceSpec": {
    type: ["ClusterIP"],
    session_affinity: ["None"],
    ...all("target", "ports"),
  },
  "forest.v1.ServicePort": all("name", "port", "target_port", "protocol"),
};

function all(...fields: readonly string[]): MessageSupport {
  return Object.fromEntries(fields.map((field) => [field, "all"]));
}
