import { LEFT_OUT } from "@forage/common/scrub-text";

/**
 * The fields whose texts are kept. All others are removed, so that a new field must be added here
 * explicitly. Secrets may be in commands, arguments, values of environment variables, annotations
 * and headers.
 */
const KEPT: ReadonlySet<string> = new Set([
  // Names and references.
  ...[
    "namespace",
    "kind",
    "name",
    "uid",
    "id",
    "podUid",
    "rolloutId",
    "applyId",
    "node",
    "nodes",
    "pod",
    "owner",
  ],
  ...[
    "container",
    "containerId",
    "image",
    "images",
    "workload",
    "workloadKind",
    "workloadName",
    "service",
    "target",
  ],
  ...[
    "targetService",
    "secretName",
    "configName",
    "configMapName",
    "claimName",
    "imagePullSecrets",
    "usedBy",
  ],
  ...[
    "priorityClassName",
    "runtimeClassName",
    "runtimeClasses",
    "serviceAccountName",
    "certificateRef",
    "gatewayRef",
  ],
  ...[
    "gateway",
    "objectVersions",
    "version",
    "templateHash",
    "specHash",
    "key",
    "fieldRef",
    "resourceFieldRef",
  ],
  // Labels and selectors.
  ...["labels", "nodeSelector", "matchLabels", "topologyKey", "namespaces", "operator", "effect"],
  // States.
  ...[
    "phase",
    "state",
    "reason",
    "message",
    "type",
    "status",
    "health",
    "condition",
    "stopReason",
    "unschedulable",
  ],
  ...[
    "draining",
    "action",
    "now",
    "tls",
    "summary",
    "advice",
    "issuer",
    "certificate",
    "bootId",
    "completedIndexes",
  ],
  ...["lastScaleReason", "announcedBy"],
  // Amounts and times.
  ...[
    "cpu",
    "memory",
    "ephemeralStorage",
    "extended",
    "sizeLimit",
    "medium",
    "capacity",
    "allocatable",
    "requested",
  ],
  ...["quota", "used", "maxUnavailable", "maxSurge", "targetValue", "targetType", "schedule", "timezone"],
  // Addresses and ports.
  ...[
    "hostnames",
    "hostname",
    "address",
    "addresses",
    "virtualIps",
    "loadBalancerIps",
    "podIp",
    "podIps",
    "networks",
  ],
  ...["protocol", "portName", "scheme", "server", "sessionAffinity", "dnsPolicy"],
  // Versions and policies.
  ...["agentVersion", "containerdVersion", "nerdctlVersion", "proxyVersion", "os", "kernel", "architecture"],
  ...[
    "imagePullPolicy",
    "restartPolicy",
    "concurrencyPolicy",
    "completionMode",
    "whenUnsatisfiable",
    "mode",
    "role",
  ],
  ...["profile", "hostPorts", "capabilities", "devices", "add", "drop", "mountPath", "fsGroupChangePolicy"],
  ...["seccompProfile", "seLinuxType", "field"],
]);
/** Fields below which containers write texts: a termination message may contain anything. */
const WRITTEN_BY_CONTAINERS: ReadonlySet<string> = new Set(["terminated", "lastTermination", "terminations"]);
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]{1,20}Z$/;
const NUMBER = /^-?\d{1,20}(\.\d{1,20})?$/;

/**
 * Returns the JSON form of a message without texts that may be secret. Numbers, times and booleans
 * are kept.
 */
export function leaveOut(json: unknown, key = "", container = false): unknown {
  if (typeof json === "string") {
    const kept = (KEPT.has(key) && !(container && key === "message")) || TIME.test(json) || json === "";
    return kept ? json : LEFT_OUT;
  }
  if (Array.isArray(json)) return json.map((item) => leaveOut(item, key, container));
  if (typeof json !== "object" || json === null) return json;
  const fields = json as Record<string, unknown>;
  // In filters of routes, `add` contains headers and their values; for containers, it is a list of
  // capabilities.
  const isMap = KEPT.has(key) && key !== "add" && Object.values(fields).every((it) => typeof it === "string");
  if (isMap && MAPS.has(key)) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      // 64-bit numbers are texts in JSON.
      typeof value === "string" && WIDE_NUMBERS.has(name) && NUMBER.test(value)
        ? value
        : leaveOut(value, name, container || WRITTEN_BY_CONTAINERS.has(name)),
    ]),
  );
}

/** Fields whose values are kept under any key. */
const MAPS: ReadonlySet<string> = new Set([
  ...[
    "labels",
    "nodeSelector",
    "matchLabels",
    "objectVersions",
    "extended",
    "capacity",
    "allocatable",
    "requested",
  ],
  ...["quota", "used"],
]);
const WIDE_NUMBERS: ReadonlySet<string> = new Set([
  ...[
    "generation",
    "sequence",
    "sizeBytes",
    "usedBytes",
    "behindMs",
    "revisionsBehind",
    "assignmentRevision",
  ],
]);
