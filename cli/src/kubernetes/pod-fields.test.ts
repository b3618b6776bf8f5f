import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { read, testFields } from "../../test/field-table.ts";
import { METADATA_FIELDS, TEMPLATE_METADATA_FIELDS } from "./metadata-fields.ts";
import * as placement from "./placement-fields.ts";
import * as pod from "./pod-fields.ts";
import * as volume from "./volume-fields.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

const ofServer = {
  creationTimestamp: ["2026-01-01T00:00:00Z", "no effect"],
  deletionGracePeriodSeconds: ["1", "no effect"],
  deletionTimestamp: ["2026-01-01T00:00:00Z", "no effect"],
  finalizers: ["[a]", "no effect"],
  generation: ["1", "no effect"],
  managedFields: ["[{manager: a}]", "no effect"],
  name: ["a", "no effect"],
  namespace: ["a", "no effect"],
  ownerReferences: ["[{name: a}]", "no effect"],
  resourceVersion: ['"1"', "no effect"],
  selfLink: ["/a", "no effect"],
  uid: ["a", "no effect"],
} as const;

testFields("template's metadata", TEMPLATE_METADATA_FIELDS, {
  ...ofServer,
  annotations: ["{a: b}", { annotations: { a: "b" } }],
  generateName: ["a-", "no effect"],
  labels: ["{a: b}", { labels: { a: "b" } }],
});
describe("metadata", () => {
  test("refuses generateName, and ignores the other fields", () => {
    const { generateName: _, ...rest } = METADATA_FIELDS;
    assert.deepEqual(
      Object.entries(rest).filter(([, rule]) => !("noEffect" in rule)),
      [],
    );
    assert.match(
      read(METADATA_FIELDS, "{generateName: a-}").problems[0]?.message ?? "",
      /give the object a name/,
    );
  });
});

testFields("pod", pod.POD_FIELDS, {
  activeDeadlineSeconds: ["1", "lost"],
  affinity: ["{podAffinity: {}}", { affinity: { pod_affinity: {} } }],
  automountServiceAccountToken: ["false", "no effect"],
  containers: ["[{name: a}]", "no effect"],
  dnsConfig: ["{searches: [a]}", { dns_config: { searches: ["a"] } }],
  dnsPolicy: ["ClusterFirstWithHostNet", "lost"],
  enableServiceLinks: ["true", "no effect"],
  ephemeralContainers: ["[]", "no effect"],
  hostAliases: ["[{ip: 10.0.0.1}]", "lost"],
  hostIPC: ["true", "lost"],
  hostNetwork: ["true", { host_network: true }],
  hostPID: ["true", "lost"],
  hostUsers: ["false", "lost"],
  hostname: ["a", "lost"],
  hostnameOverride: ["a", "lost"],
  imagePullSecrets: ["[{name: a}]", { image_pull_secrets: ["a"] }],
  initContainers: ["[{name: a}]", "no effect"],
  nodeName: ["n1", { node_selector: { "kubernetes.io/hostname": "n1" } }],
  nodeSelector: ["{a: b}", { node_selector: { a: "b" } }],
  os: ["{name: windows}", "lost"],
  overhead: ["{cpu: 1}", "no effect"],
  preemptionPolicy: ["Never", "no effect"],
  priority: ["1", "no effect"],
  priorityClassName: ["a", { priority_class_name: "a" }],
  readinessGates: ["[{conditionType: a}]", "lost"],
  resourceClaims: ["[{name: a}]", "lost"],
  resources: ["{limits: {cpu: 1}}", "lost"],
  restartPolicy: ["Never", { restart_policy: "Never" }],
  runtimeClassName: ["kata", { runtime_class_name: "kata" }],
  schedulerName: ["own", "lost"],
  schedulingGates: ["[{name: a}]", "lost"],
  securityContext: ["{fsGroup: 1}", { security_context: { fs_group: 1 } }],
  serviceAccount: ["a", { service_account_name: "a" }],
  serviceAccountName: ["a", { service_account_name: "a" }],
  setHostnameAsFQDN: ["true", "lost"],
  shareProcessNamespace: ["true", "lost"],
  subdomain: ["a", "lost"],
  terminationGracePeriodSeconds: ["0", "lost"],
  tolerations: ["[{key: a}]", { tolerations: [{ key: "a" }] }],
  topologySpreadConstraints: ["[{maxSkew: 1}]", { topology_spread_constraints: [{ max_skew: 1 }] }],
  volumes: ["[{name: a}]", "no effect"],
  schedulingGroup: ["{podGroupName: a}", "lost"],
  workloadRef: ["{name: a}", "lost"],
});
testFields("pod template", pod.TEMPLATE_FIELDS, {
  metadata: ["{labels: {a: b}}", "no effect"],
  spec: ["{}", "no effect"],
});
testFields("DNS configuration", pod.DNS_FIELDS, {
  nameservers: ["[10.0.0.1]", { nameservers: ["10.0.0.1"] }],
  options: ["[{name: a, value: b}]", { options: [{ name: "a", value: "b" }] }],
  searches: ["[a]", { searches: ["a"] }],
});
testFields("DNS option", pod.DNS_OPTION_FIELDS, { name: ["a", { name: "a" }], value: ["a", { value: "a" }] });
testFields("pull secret", pod.PULL_SECRET_FIELDS, { name: ["a", { name: "a" }] });

const CLOUD_VOLUMES =
  "awsElasticBlockStore azureDisk azureFile cephfs cinder csi downwardAPI ephemeral fc flexVolume flocker gcePersistentDisk gitRepo glusterfs image iscsi photonPersistentDisk portworxVolume projected quobyte rbd scaleIO storageos vsphereVolume";
testFields("volume", volume.VOLUME_FIELDS, {
  ...Object.fromEntries(CLOUD_VOLUMES.split(" ").map((name) => [name, ["{a: b}", "lost"] as const])),
  configMap: ["{name: a}", { config_map: { config_map_name: "a" } }],
  emptyDir: ["{}", { empty_dir: {} }],
  hostPath: ["{path: /a}", { host_path: { path: "/a" } }],
  name: ["a", { name: "a" }],
  nfs: ["{server: a, path: /}", { nfs: { server: "a", path: "/" } }],
  persistentVolumeClaim: ["{claimName: a}", { pvc: { claim_name: "a" } }],
  secret: ["{secretName: a}", { secret: { secret_name: "a" } }],
});
testFields("config map as a volume", volume.CONFIG_MAP_VOLUME_FIELDS, {
  defaultMode: ["0600", { default_mode: 0o600 }],
  items: ["[{key: a, path: b}]", { items: [{ key: "a", path: "b" }] }],
  name: ["a", { config_map_name: "a" }],
  optional: ["true", { optional: true }],
});
testFields("secret as a volume", volume.SECRET_VOLUME_FIELDS, {
  defaultMode: ["384", { default_mode: 384 }],
  items: ["[{key: a, path: b}]", { items: [{ key: "a", path: "b" }] }],
  optional: ["true", { optional: true }],
  secretName: ["a", { secret_name: "a" }],
});
testFields("file of a volume", volume.KEY_TO_PATH_FIELDS, {
  key: ["a", { key: "a" }],
  mode: ["0o440", { mode: 0o440 }],
  path: ["a", { path: "a" }],
});
testFields("empty directory", volume.EMPTY_DIR_FIELDS, {
  medium: ["HugePages", "lost"],
  sizeLimit: ["1Gi", { size_limit: "1Gi" }],
});
testFields("claim as a volume", volume.CLAIM_VOLUME_FIELDS, {
  claimName: ["a", { claim_name: "a" }],
  readOnly: ["true", { read_only: true }],
});
testFields("path of the host", volume.HOST_PATH_FIELDS, {
  path: ["/a", { path: "/a" }],
  type: ["Socket", "lost"],
});
testFields("NFS volume", volume.NFS_FIELDS, {
  path: ["/", { path: "/" }],
  readOnly: ["true", { read_only: true }],
  server: ["a", { server: "a" }],
});

testFields("requirement", placement.REQUIREMENT_FIELDS, {
  key: ["a", { key: "a" }],
  operator: ["In", { operator: "In" }],
  values: ["[a]", { values: ["a"] }],
});
testFields("node selector", placement.NODE_SELECTOR_FIELDS, {
  nodeSelectorTerms: ["[{}]", { terms: [{}] }],
});
testFields("term of a node selector", placement.NODE_TERM_FIELDS, {
  matchExpressions: ["[{key: a}]", { match_expressions: [{ key: "a" }] }],
  matchFields: ["[{key: a}]", { match_fields: [{ key: "a" }] }],
});
testFields("preferred node", placement.PREFERRED_NODE_FIELDS, {
  preference: ["{}", { preference: {} }],
  weight: ["1", { weight: 1 }],
});
testFields("node affinity", placement.NODE_AFFINITY_FIELDS, {
  [PREFERRED]: ["[{weight: 1}]", { preferred: [{ weight: 1 }] }],
  [REQUIRED]: ["{nodeSelectorTerms: []}", { required: { terms: [] } }],
});
testFields("label selector", placement.LABEL_SELECTOR_FIELDS, {
  matchExpressions: ["[{key: a}]", { match_expressions: [{ key: "a" }] }],
  matchLabels: ["{a: b}", { match_labels: { a: "b" } }],
});
testFields("term of a pod affinity", placement.POD_TERM_FIELDS, {
  labelSelector: ["{}", { label_selector: {} }],
  matchLabelKeys: ["[a]", "lost"],
  mismatchLabelKeys: ["[a]", "lost"],
  namespaceSelector: ["{matchLabels: {a: b}}", "lost"],
  namespaces: ["[a]", { namespaces: ["a"] }],
  topologyKey: ["a", { topology_key: "a" }],
});
testFields("weighted term of a pod affinity", placement.WEIGHTED_POD_TERM_FIELDS, {
  podAffinityTerm: ["{}", { term: {} }],
  weight: ["1", { weight: 1 }],
});
testFields("pod affinity", placement.POD_AFFINITY_FIELDS, {
  [PREFERRED]: ["[{weight: 1}]", { preferred: [{ weight: 1 }] }],
  [REQUIRED]: ["[{topologyKey: a}]", { required: [{ topology_key: "a" }] }],
});
testFields("affinity", placement.AFFINITY_FIELDS, {
  nodeAffinity: ["{}", { node_affinity: {} }],
  podAffinity: ["{}", { pod_affinity: {} }],
  podAntiAffinity: ["{}", { pod_anti_affinity: {} }],
});
testFields("toleration", placement.TOLERATION_FIELDS, {
  effect: ["NoSchedule", { effect: "NoSchedule" }],
  key: ["a", { key: "a" }],
  operator: ["Lt", "lost"],
  tolerationSeconds: ["0", "lost"],
  value: ["a", { value: "a" }],
});
testFields("topology spread constraint", placement.SPREAD_FIELDS, {
  labelSelector: ["{}", { label_selector: {} }],
  matchLabelKeys: ["[a]", "lost"],
  maxSkew: ["1", { max_skew: 1 }],
  minDomains: ["2", "lost"],
  nodeAffinityPolicy: ["Ignore", "lost"],
  nodeTaintsPolicy: ["Honor", "lost"],
  topologyKey: ["a", { topology_key: "a" }],
  whenUnsatisfiable: ["ScheduleAnyway", { when_unsatisfiable: "ScheduleAnyway" }],
});
