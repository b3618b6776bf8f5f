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
  "forest.v1.ContainerServiceSpec": all(
    "scaling",
    "container",
    "sidecars",
    "init_containers",
    "volumes",
    "update_strategy",
    "pod_config",
  ),
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
    "volume_mounts",
    "liveness_probe",
    "readiness_probe",
    "startup_probe",
    "lifecycle",
    "security_context",
    "image_pull_policy",
    "stdin",
    "tty",
  ),
  "forest.v1.EnvVar": all("name", "value", "secret_ref", "config_ref", "field_ref", "resource_field_ref"),
  "forest.v1.SecretKeyRef": all("secret_name", "key"),
  "forest.v1.ConfigKeyRef": all("config_name", "key"),
  "forest.v1.ContainerPort": all("name", "container_port", "protocol"),
  "forest.v1.ResourceRequirements": all("requests", "limits"),
  "forest.v1.ResourceList": all("cpu", "memory", "ephemeral_storage", "extended"),
  "forest.v1.VolumeMount": all("name", "mount_path", "sub_path", "read_only"),
  "forest.v1.Probe": all(
    "http_get",
    "tcp_socket",
    "exec",
    "grpc",
    "initial_delay_seconds",
    "period_seconds",
    "timeout_seconds",
    "success_threshold",
    "failure_threshold",
  ),
  "forest.v1.HttpGetProbe": all("path", "port", "scheme", "http_headers"),
  "forest.v1.HttpHeader": all("name", "value"),
  "forest.v1.TcpSocketProbe": all("port"),
  "forest.v1.ExecProbe": all("command"),
  "forest.v1.GrpcProbe": all("port", "service"),
  "forest.v1.Lifecycle": all("post_start", "pre_stop"),
  "forest.v1.LifecycleHandler": all("exec", "http_get", "tcp_socket"),
  "forest.v1.ContainerSecurityContext": all(
    "run_as_non_root",
    "run_as_user",
    "run_as_group",
    "read_only_root_filesystem",
    "privileged",
    "allow_privilege_escalation",
    "capabilities",
    "se_linux_type",
    "seccomp_profile",
  ),
  "forest.v1.Capabilities": all("add", "drop"),
  "forest.v1.Volume": all("name", "empty_dir", "secret", "config_map", "pvc", "host_path", "nfs"),
  "forest.v1.EmptyDirVolume": all("medium", "size_limit"),
  "forest.v1.SecretVolume": all("secret_name", "items", "default_mode", "optional"),
  "forest.v1.KeyToPath": all("key", "path", "mode"),
  "forest.v1.ConfigMapVolume": all("config_map_name", "items", "default_mode", "optional"),
  "forest.v1.PVCVolume": all("claim_name", "read_only"),
  "forest.v1.HostPathVolume": all("path", "type"),
  "forest.v1.NfsVolume": all("server", "path", "read_only"),
  "forest.v1.PodConfig": all(
    "service_account_name",
    "restart_policy",
    "termination_grace_period_seconds",
    "dns_policy",
    "dns_config",
    "host_network",
    "node_selector",
    "tolerations",
    "affinity",
    "topology_spread_constraints",
    "image_pull_secrets",
    "security_context",
    "priority_class_name",
    "runtime_class_name",
    "annotations",
    "labels",
  ),
  "forest.v1.PodDnsConfig": all("nameservers", "searches", "options"),
  "forest.v1.DnsOption": all("name", "value"),
  "forest.v1.Toleration": all("key", "operator", "value", "effect", "toleration_seconds"),
  "forest.v1.Affinity": all("node_affinity", "pod_affinity", "pod_anti_affinity"),
  "forest.v1.NodeAffinity": all("preferred", "required"),
  "forest.v1.PreferredSchedulingTerm": all("weight", "preference"),
  "forest.v1.NodeSelectorTerm": all("match_expressions", "match_fields"),
  "forest.v1.NodeSelectorRequirement": all("key", "operator", "values"),
  "forest.v1.NodeSelector": all("terms"),
  "forest.v1.PodAffinity": all("preferred", "required"),
  "forest.v1.WeightedPodAffinityTerm": all("weight", "term"),
  "forest.v1.PodAffinityTerm": all("label_selector", "topology_key", "namespaces"),
  "forest.v1.LabelSelector": all("match_labels", "match_expressions"),
  "forest.v1.LabelSelectorRequirement": all("key", "operator", "values"),
  "forest.v1.PodAntiAffinity": all("preferred", "required"),
  "forest.v1.TopologySpreadConstraint": all(
    "max_skew",
    "topology_key",
    "when_unsatisfiable",
    "label_selector",
  ),
  "forest.v1.PodSecurityContext": all(
    "run_as_user",
    "run_as_group",
    "run_as_non_root",
    "fs_group",
    "supplemental_groups",
    "fs_group_change_policy",
    "seccomp_profile",
  ),
  "forest.v1.ServiceSpec": {
    type: ["ClusterIP"],
    session_affinity: ["None"],
    ...all("target", "ports", "annotations"),
  },
  "forest.v1.ServicePort": all("name", "port", "target_port", "protocol"),
};

function all(...fields: readonly string[]): MessageSupport {
  return Object.fromEntries(fields.map((field) => [field, "all"]));
}
