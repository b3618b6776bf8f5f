import assert from "node:assert/strict";
import { test } from "node:test";
import { read, testFields } from "../../test/field-table.ts";
import * as container from "./container-fields.ts";
import { NO_SCOPE } from "./rules.ts";

testFields("container", container.CONTAINER_FIELDS, {
  args: ["[a]", { args: ["a"] }],
  command: ["[a]", { command: ["a"] }],
  env: ["[{name: A, value: b}]", { env: [{ name: "A", value: "b" }] }],
  envFrom: ["[]", { env_from: [] }],
  image: ["app:1", { image: "app:1" }],
  imagePullPolicy: ["Always", { image_pull_policy: "Always" }],
  lifecycle: ["{preStop: {exec: {command: [a]}}}", { lifecycle: { pre_stop: { exec: { command: ["a"] } } } }],
  livenessProbe: ["{tcpSocket: {port: 80}}", { liveness_probe: { tcp_socket: { port: 80 } } }],
  name: ["app", { name: "app" }],
  ports: ["[{containerPort: 80}]", { ports: [{ container_port: 80 }] }],
  readinessProbe: ["{grpc: {port: 80}}", { readiness_probe: { grpc: { port: 80 } } }],
  resizePolicy: ["[{resourceName: cpu}]", "no effect"],
  resources: ["{limits: {cpu: 1}}", { resources: { limits: { cpu: "1" } } }],
  restartPolicy: ["Always", "no effect"],
  restartPolicyRules: ["[{action: Restart}]", "lost"],
  securityContext: [
    "{privileged: true}",
    { security_context: { allow_privilege_escalation: true, privileged: true } },
  ],
  startupProbe: ["{exec: {command: [a]}}", { startup_probe: { exec: { command: ["a"] } } }],
  stdin: ["true", { stdin: true }],
  stdinOnce: ["true", "lost"],
  terminationMessagePath: ["/x", "no effect"],
  terminationMessagePolicy: ["File", "no effect"],
  tty: ["true", { tty: true }],
  volumeDevices: ["[{name: a}]", "lost"],
  volumeMounts: ["[{name: a, mountPath: /a}]", { volume_mounts: [{ name: "a", mount_path: "/a" }] }],
  workingDir: ["/a", { working_dir: "/a" }],
});

testFields("probe", container.PROBE_FIELDS, {
  exec: ["{command: [a]}", { exec: { command: ["a"] } }],
  failureThreshold: ["2", { failure_threshold: 2 }],
  grpc: ["{port: 80}", { grpc: { port: 80 } }],
  httpGet: ["{port: http}", { http_get: { port: 8080 } }],
  initialDelaySeconds: ["2", { initial_delay_seconds: 2 }],
  periodSeconds: ["2", { period_seconds: 2 }],
  successThreshold: ["2", { success_threshold: 2 }],
  tcpSocket: ["{port: http}", { tcp_socket: { port: 8080 } }],
  terminationGracePeriodSeconds: ["2", "lost"],
  timeoutSeconds: ["2", { timeout_seconds: 2 }],
});
testFields("command of a probe", container.EXEC_FIELDS, { command: ["[a]", { command: ["a"] }] });
testFields("HTTP probe", container.HTTP_GET_FIELDS, {
  host: ["a.example", "lost"],
  httpHeaders: ["[{name: a, value: b}]", { http_headers: [{ name: "a", value: "b" }] }],
  path: ["/a", { path: "/a" }],
  port: ["80", { port: 80 }],
  scheme: ["HTTPS", { scheme: "HTTPS" }],
});
testFields("header of a probe", container.HTTP_HEADER_FIELDS, {
  name: ["a", { name: "a" }],
  value: ["a", { value: "a" }],
});
testFields("TCP probe", container.TCP_SOCKET_FIELDS, {
  host: ["a.example", "lost"],
  port: ["80", { port: 80 }],
});
testFields("gRPC probe", container.GRPC_FIELDS, {
  port: ["80", { port: 80 }],
  service: ["a", { service: "a" }],
});
testFields("lifecycle", container.LIFECYCLE_FIELDS, {
  postStart: ["{tcpSocket: {port: 80}}", { post_start: { tcp_socket: { port: 80 } } }],
  preStop: ["{httpGet: {port: 80}}", { pre_stop: { http_get: { port: 80 } } }],
  stopSignal: ["SIGINT", "lost"],
});
testFields("lifecycle hook", container.HOOK_FIELDS, {
  exec: ["{command: [a]}", { exec: { command: ["a"] } }],
  httpGet: ["{port: 80}", { http_get: { port: 80 } }],
  sleep: ["{seconds: 5}", "lost"],
  tcpSocket: ["{port: 80}", { tcp_socket: { port: 80 } }],
});

testFields("container's security context", container.CONTAINER_SECURITY_FIELDS, {
  allowPrivilegeEscalation: ["false", { allow_privilege_escalation: false }],
  appArmorProfile: ["{type: Unconfined}", "lost"],
  capabilities: ["{add: [A], drop: [B]}", { capabilities: { add: ["A"], drop: ["B"] } }],
  privileged: ["true", { privileged: true }],
  procMount: ["Unmasked", "lost"],
  readOnlyRootFilesystem: ["true", { read_only_root_filesystem: true }],
  runAsGroup: ["1", { run_as_group: 1 }],
  runAsNonRoot: ["true", { run_as_non_root: true }],
  runAsUser: ["0", "lost"],
  seLinuxOptions: ["{type: a}", { se_linux_type: "a" }],
  seccompProfile: ["{type: RuntimeDefault}", { seccomp_profile: "RuntimeDefault" }],
  windowsOptions: ["{runAsUserName: a}", "lost"],
});
testFields("set of capabilities", container.CAPABILITIES_FIELDS, {
  add: ["[A]", { add: ["A"] }],
  drop: ["[A]", { drop: ["A"] }],
});
testFields("set of SELinux options", container.SELINUX_FIELDS, {
  level: ["a", "lost"],
  role: ["a", "lost"],
  type: ["a", { se_linux_type: "a" }],
  user: ["a", "lost"],
});
testFields("seccomp profile", container.SECCOMP_FIELDS, {
  localhostProfile: ["/a", { path: "/a" }],
  type: ["Unconfined", { type: "Unconfined" }],
});
testFields("pod's security context", container.POD_SECURITY_FIELDS, {
  appArmorProfile: ["{type: Unconfined}", "lost"],
  fsGroup: ["1", { fs_group: 1 }],
  fsGroupChangePolicy: ["Always", { fs_group_change_policy: "Always" }],
  runAsGroup: ["0", "lost"],
  runAsNonRoot: ["true", { run_as_non_root: true }],
  runAsUser: ["1", { run_as_user: 1 }],
  seLinuxChangePolicy: ["Recursive", "lost"],
  seLinuxOptions: ["{type: a}", "lost"],
  seccompProfile: ["{type: Localhost, localhostProfile: /a}", { seccomp_profile: "/a" }],
  supplementalGroups: ["[1]", { supplemental_groups: [1] }],
  supplementalGroupsPolicy: ["Strict", "lost"],
  sysctls: ["[{name: a, value: b}]", "lost"],
  windowsOptions: ["{runAsUserName: a}", "lost"],
});

testFields("set of resources", container.RESOURCES_FIELDS, {
  claims: ["[{name: a}]", "lost"],
  limits: [
    "{memory: 1Gi, ephemeral-storage: 2Gi, a.example/gpu: 1}",
    { limits: { memory: "1Gi", ephemeral_storage: "2Gi", extended: { "a.example/gpu": "1" } } },
  ],
  requests: ["{cpu: 100m}", { requests: { cpu: "100m" } }],
});
testFields("container's port", container.PORT_FIELDS, {
  containerPort: ["80", { container_port: 80 }],
  hostIP: ["10.0.0.1", "lost"],
  hostPort: ["80", "lost"],
  name: ["a", { name: "a" }],
  protocol: ["UDP", { protocol: "UDP" }],
});
testFields("mount", container.MOUNT_FIELDS, {
  mountPath: ["/a", { mount_path: "/a" }],
  mountPropagation: ["Bidirectional", "lost"],
  name: ["a", { name: "a" }],
  readOnly: ["true", { read_only: true }],
  recursiveReadOnly: ["Enabled", "lost"],
  subPath: ["a", { sub_path: "a" }],
  subPathExpr: ["$(A)", "lost"],
});

testFields("variable", container.ENV_FIELDS, {
  name: ["A", { name: "A" }],
  value: ["1", { value: "1" }],
  valueFrom: ["{secretKeyRef: {name: a, key: b}}", { secret_ref: { secret_name: "a", key: "b" } }],
});
testFields("variable's source", container.VALUE_FROM_FIELDS, {
  configMapKeyRef: ["{name: a, key: b}", { config_ref: { config_name: "a", key: "b" } }],
  fieldRef: ["{fieldPath: status.podIP}", { field_ref: "status.podIP" }],
  fileKeyRef: ["{key: a}", "lost"],
  resourceFieldRef: ["{resource: limits.cpu}", { resource_field_ref: "limits.cpu" }],
  secretKeyRef: ["{name: a, key: b}", { secret_ref: { secret_name: "a", key: "b" } }],
});
testFields("reference to a field", container.FIELD_REF_FIELDS, {
  apiVersion: ["v1", "no effect"],
  fieldPath: ["status.hostIPs", "lost"],
});
testFields("reference to a resource", container.RESOURCE_REF_FIELDS, {
  containerName: ["other", "lost"],
  divisor: ["1Mi", "lost"],
  resource: ["limits.cpu", { resource_field_ref: "limits.cpu" }],
});
testFields("reference to a key of a config map", container.CONFIG_KEY_FIELDS, {
  key: ["a", { key: "a" }],
  name: ["a", { config_name: "a" }],
  optional: ["true", "lost"],
});
testFields("reference to a key of a secret", container.SECRET_KEY_FIELDS, {
  key: ["a", { key: "a" }],
  name: ["a", { secret_name: "a" }],
  optional: ["true", "lost"],
});
testFields("source of all variables", container.ENV_FROM_FIELDS, {
  configMapRef: ["{name: a}", { map: { name: "a" } }],
  prefix: ["P_", { prefix: "P_" }],
  secretRef: ["{name: a}", { secret: { name: "a" } }],
});
testFields("reference to all keys", container.ENV_SOURCE_FIELDS, {
  name: ["a", { name: "a" }],
  optional: ["true", "lost"],
});

test("converts all keys of an object to variables, with precedence for those in env", () => {
  const scope = {
    ...NO_SCOPE,
    keysOf: (kind: string) => (kind === "Secret" ? ["A", "B", "not ok"] : undefined),
  };
  const fields = {
    box: (field, into, _key, within) => void Object.assign(into, container.readContainer(field, within)),
  } as const satisfies Parameters<typeof read>[0];
  const { draft, losses } = read(
    fields,
    "{box: {env: [{name: P_B, value: own}], envFrom: [{prefix: P_, secretRef: {name: s}}, {configMapRef: {name: gone}}]}}",
    scope,
  );
  assert.deepEqual(draft, {
    env: [
      { name: "P_A", secret_ref: { secret_name: "s", key: "A" } },
      { name: "P_B", value: "own" },
    ],
  });
  assert.match(losses[0]?.message ?? "", /all keys of the config map "gone", which is not in the files/);
});

test("reports problems of containers at their positions", () => {
  for (const [yaml, path, message] of [
    ["{imag: a}", "imag", /unknown field \(did you mean "image"\?\)/],
    ["{livenessProbe: {httpGet: {port: web}}}", "livenessProbe.httpGet.port", /"web" is not the name/],
    ["{args: {a: b}}", "args", /must be a list/],
    ["{tty: perhaps}", "tty", /true or false/],
    ["{envFrom: [{prefix: a}]}", "envFrom[0]", /neither configMapRef nor secretRef/],
  ] as const) {
    const [problem] = read(container.CONTAINER_FIELDS, yaml).problems;
    assert.deepEqual([problem?.path, message.test(problem?.message ?? "")], [path, true], yaml);
  }
});
