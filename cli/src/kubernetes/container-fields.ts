import type { Field } from "../conversion/field.ts";
import {
  type Draft,
  flag,
  list,
  lost,
  noEffect,
  nonZero,
  oneOf,
  part,
  port,
  type ReadField,
  type Rules,
  readFields,
  type Scope,
  text,
  texts,
  whole,
} from "./rules.ts";

const OTHER_HOST = lost("is not another host's: probes and hooks ask the pod itself");

export const EXEC_FIELDS: Rules = { command: texts };
export const HTTP_HEADER_FIELDS: Rules = { name: text, value: text };
export const HTTP_GET_FIELDS: Rules = {
  host: OTHER_HOST,
  httpHeaders: list(HTTP_HEADER_FIELDS),
  path: text,
  port,
  scheme: text,
};
export const TCP_SOCKET_FIELDS: Rules = { host: OTHER_HOST, port };
export const GRPC_FIELDS: Rules = { port: whole, service: text };

export const PROBE_FIELDS: Rules = {
  exec: part(EXEC_FIELDS),
  failureThreshold: whole,
  grpc: part(GRPC_FIELDS),
  httpGet: part(HTTP_GET_FIELDS),
  initialDelaySeconds: whole,
  periodSeconds: whole,
  successThreshold: whole,
  tcpSocket: part(TCP_SOCKET_FIELDS),
  terminationGracePeriodSeconds: lost("has no counterpart: the grace period of the pod holds"),
  timeoutSeconds: whole,
};

export const HOOK_FIELDS: Rules = {
  exec: part(EXEC_FIELDS),
  httpGet: part(HTTP_GET_FIELDS),
  sleep: lost("has no counterpart: use exec with the program sleep of the image"),
  tcpSocket: part(TCP_SOCKET_FIELDS),
};

export const LIFECYCLE_FIELDS: Rules = {
  postStart: part(HOOK_FIELDS),
  preStop: part(HOOK_FIELDS),
  stopSignal: lost("has no counterpart: the image's STOPSIGNAL is used"),
};

export const CAPABILITIES_FIELDS: Rules = { add: texts, drop: texts };

export const SELINUX_FIELDS: Rules = {
  level: lost("has no counterpart: only the type is set"),
  role: lost("has no counterpart: only the type is set"),
  type: (field, into) => {
    into.se_linux_type = field.text();
  },
  user: lost("has no counterpart: only the type is set"),
};

export const SECCOMP_FIELDS: Rules = {
  localhostProfile: (field, into) => {
    into.path = field.text();
  },
  type: text,
};

/** Converts a seccomp profile: its kind, or the profile's path on the host. */
export const seccomp: ReadField = (field, into, _key, scope) => {
  const { type, path } = readFields(field, SECCOMP_FIELDS, scope);
  if (type === "Localhost" && typeof path === "string" && !path.startsWith("/"))
    field.lose("names a file below a kubelet's directory: write the profile's whole path on the host");
  else into.seccomp_profile = type === "Localhost" ? path : type;
};

const IMAGE_DEFAULT = "the image's own";
const WINDOWS = lost("is for Windows");
const APP_ARMOR = lost("has no counterpart: the runtime's default profile holds");

export const CONTAINER_SECURITY_FIELDS: Rules = {
  allowPrivilegeEscalation: flag,
  appArmorProfile: APP_ARMOR,
  capabilities: part(CAPABILITIES_FIELDS),
  privileged: flag,
  procMount: oneOf(["Default"], "has no counterpart: /proc is masked", true),
  readOnlyRootFilesystem: flag,
  runAsGroup: nonZero(IMAGE_DEFAULT),
  runAsNonRoot: flag,
  runAsUser: nonZero(IMAGE_DEFAULT),
  seLinuxOptions: (field, into, _key, scope) => void readFields(field, SELINUX_FIELDS, scope, into),
  seccompProfile: seccomp,
  windowsOptions: WINDOWS,
};

export const POD_SECURITY_FIELDS: Rules = {
  appArmorProfile: APP_ARMOR,
  fsGroup: nonZero("no group"),
  fsGroupChangePolicy: text,
  runAsGroup: nonZero(IMAGE_DEFAULT),
  runAsNonRoot: flag,
  runAsUser: nonZero(IMAGE_DEFAULT),
  seLinuxChangePolicy: lost("has no counterpart"),
  seLinuxOptions: lost("is read from containers only"),
  seccompProfile: seccomp,
  supplementalGroups: (field, into) => {
    into.supplemental_groups = field.items().map((item) => item.whole());
  },
  supplementalGroupsPolicy: oneOf(["Merge"], "has no counterpart", true),
  sysctls: lost("are settings of the host that pods don't have"),
  windowsOptions: WINDOWS,
};

/** Reads a list of resources. Names with a domain are extended resources. */
const amounts: ReadField = (field, into, key) => {
  const found: Draft = {};
  const extended: Record<string, string> = {};
  for (const [name, value] of field.entries()) {
    if (name === "cpu" || name === "memory") found[name] = value.text();
    else if (name === "ephemeral-storage") found.ephemeral_storage = value.text();
    else if (name.includes("/")) extended[name] = value.text();
    else value.lose("is a resource that nodes don't have here");
  }
  into[key] = { ...found, ...(Object.keys(extended).length > 0 && { extended }) };
};

export const RESOURCES_FIELDS: Rules = {
  claims: lost("has no counterpart: devices are extended resources"),
  limits: amounts,
  requests: amounts,
};

export const PORT_FIELDS: Rules = {
  containerPort: whole,
  hostIP: lost("has no counterpart"),
  hostPort: lost("has no counterpart: use a service of type NodePort, or the host's network"),
  name: text,
  protocol: text,
};

export const MOUNT_FIELDS: Rules = {
  mountPath: text,
  mountPropagation: oneOf(["None"], "has no counterpart: mounts are not propagated", true),
  name: text,
  readOnly: flag,
  recursiveReadOnly: oneOf(["Disabled"], "has no counterpart", true),
  subPath: text,
  subPathExpr: lost("has no counterpart: write the path out as subPath"),
};

const mounts: ReadField = (field, into, _key, scope) => {
  into.volume_mounts = field
    .items()
    .filter((item) => !scope.lostVolumes.has(item.get("name")?.text() ?? ""))
    .map((item) => readFields(item, MOUNT_FIELDS, scope));
};

const FIELD_PATH =
  /^(metadata\.(name|namespace|uid|(labels|annotations)\['.+'\])|spec\.(nodeName|serviceAccountName)|status\.(podIP|hostIP))$/;

export const FIELD_REF_FIELDS: Rules = {
  apiVersion: noEffect("there is one version"),
  fieldPath: (field, into) => {
    if (FIELD_PATH.test(field.text())) into.field_ref = field.text();
    else field.lose(`"${field.text()}" has no counterpart`);
  },
};

export const RESOURCE_REF_FIELDS: Rules = {
  containerName: (field, _into, _key, { container }) => {
    if (field.text() !== container)
      field.lose("names another container: only the container's own amounts are available");
  },
  divisor: oneOf(["0", "1"], "has no counterpart: the value is in cores or bytes", true),
  resource: (field, into) => {
    into.resource_field_ref = field.text();
  },
};

const OPTIONAL = lost("has no counterpart: the container waits for the object");
export const CONFIG_KEY_FIELDS: Rules = {
  key: text,
  name: (field, into) => {
    into.config_name = field.text();
  },
  optional: OPTIONAL,
};
export const SECRET_KEY_FIELDS: Rules = {
  key: text,
  name: (field, into) => {
    into.secret_name = field.text();
  },
  optional: OPTIONAL,
};

export const VALUE_FROM_FIELDS: Rules = {
  configMapKeyRef: (field, into, _key, scope) => {
    into.config_ref = readFields(field, CONFIG_KEY_FIELDS, scope);
  },
  fieldRef: (field, into, _key, scope) => void readFields(field, FIELD_REF_FIELDS, scope, into),
  fileKeyRef: lost("has no counterpart"),
  resourceFieldRef: (field, into, _key, scope) => void readFields(field, RESOURCE_REF_FIELDS, scope, into),
  secretKeyRef: (field, into, _key, scope) => {
    into.secret_ref = readFields(field, SECRET_KEY_FIELDS, scope);
  },
};

export const ENV_FIELDS: Rules = {
  name: text,
  value: text,
  valueFrom: (field, into, _key, scope) => void readFields(field, VALUE_FROM_FIELDS, scope, into),
};

export const ENV_SOURCE_FIELDS: Rules = { name: text, optional: OPTIONAL };
export const ENV_FROM_FIELDS: Rules = {
  configMapRef: (field, into, _key, scope) => {
    into.map = readFields(field, ENV_SOURCE_FIELDS, scope);
  },
  prefix: text,
  secretRef: (field, into, _key, scope) => {
    into.secret = readFields(field, ENV_SOURCE_FIELDS, scope);
  },
};

const VARIABLE = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

/**
 * Returns variables for all keys of one object. Keys that are not valid names of variables are
 * omitted, as in Kubernetes.
 */
function variablesOf(item: Field, scope: Scope): Draft[] {
  const read = readFields(item, ENV_FROM_FIELDS, scope);
  const { map, secret } = read as Record<string, { readonly name?: string } | undefined>;
  const name = (map ?? secret)?.name;
  const prefix = typeof read.prefix === "string" ? read.prefix : "";
  if (name === undefined) return item.fail("has neither configMapRef nor secretRef with a name") ?? [];
  const [kind, word] =
    map === undefined ? (["Secret", "secret"] as const) : (["ConfigMap", "config map"] as const);
  const keys = scope.keysOf(kind, name);
  if (keys === undefined)
    return (
      item.lose(`takes all keys of the ${word} "${name}", which is not in the files: write each under env`) ??
      []
    );
  return keys
    .filter((key) => VARIABLE.test(prefix + key))
    .map((key) => ({
      name: prefix + key,
      ...(map === undefined
        ? { secret_ref: { secret_name: name, key } }
        : { config_ref: { config_name: name, key } }),
    }));
}

export const CONTAINER_FIELDS: Rules = {
  args: texts,
  command: texts,
  env: list(ENV_FIELDS),
  envFrom: (field, into, _key, scope) => {
    into.env_from = field.items().flatMap((item) => variablesOf(item, scope));
  },
  image: text,
  imagePullPolicy: text,
  lifecycle: part(LIFECYCLE_FIELDS),
  livenessProbe: part(PROBE_FIELDS),
  name: text,
  ports: list(PORT_FIELDS),
  readinessProbe: part(PROBE_FIELDS),
  resizePolicy: noEffect("a change of resources replaces the pod"),
  resources: part(RESOURCES_FIELDS),
  restartPolicy: noEffect("read with the init containers"),
  restartPolicyRules: lost("has no counterpart"),
  securityContext: (field, into, _key, scope) => {
    // Kubernetes allows privilege escalation by default, unlike Forage.
    const read = readFields(field, CONTAINER_SECURITY_FIELDS, scope, { allow_privilege_escalation: true });
    into.security_context = read;
  },
  startupProbe: part(PROBE_FIELDS),
  stdin: flag,
  stdinOnce: lost("has no counterpart: standard input stays open until forage attach POD --end-input"),
  terminationMessagePath: noEffect("the status has the last lines of the log"),
  terminationMessagePolicy: noEffect("the status has the last lines of the log"),
  tty: flag,
  volumeDevices: lost("has no counterpart: claims are directories"),
  volumeMounts: mounts,
  workingDir: text,
};

/** Reads a container. Variables in `env` take precedence over those from whole objects. */
export function readContainer(field: Field, scope: Omit<Scope, "container">): Draft {
  const container = field.get("name")?.text() ?? "";
  const { env_from, env, ...rest } = readFields(field, CONTAINER_FIELDS, { ...scope, container });
  const variables = new Map<unknown, unknown>();
  for (const each of [env_from, env].flatMap((found) => (found ?? []) as Draft[])) {
    variables.delete(each.name);
    variables.set(each.name, each);
  }
  return { ...rest, ...(variables.size > 0 && { env: [...variables.values()] }) };
}
