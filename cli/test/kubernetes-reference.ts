import * as autoscaler from "../src/kubernetes/autoscaler-fields.ts";
import * as container from "../src/kubernetes/container-fields.ts";
import * as route from "../src/kubernetes/http-route-fields.ts";
import * as ingress from "../src/kubernetes/ingress-fields.ts";
import * as job from "../src/kubernetes/job-fields.ts";
import { METADATA_FIELDS } from "../src/kubernetes/metadata-fields.ts";
import * as object from "../src/kubernetes/object-fields.ts";
import * as placement from "../src/kubernetes/placement-fields.ts";
import * as pod from "../src/kubernetes/pod-fields.ts";
import { lost, type Rules } from "../src/kubernetes/rules.ts";
import * as service from "../src/kubernetes/service-fields.ts";
import * as volume from "../src/kubernetes/volume-fields.ts";
import * as workload from "../src/kubernetes/workload-fields.ts";

export const BEGIN = "<!-- Made by cli/test/write-reference.ts from the rules. -->\n";
export const END = "<!-- end -->\n";

const MESSAGES: Readonly<Record<string, Rules>> = {
  "metadata of any kind": { ...METADATA_FIELDS, generateName: lost("is refused: give the object a name") },
  Deployment: workload.DEPLOYMENT_FIELDS,
  StatefulSet: workload.STATEFUL_SET_FIELDS,
  "StatefulSet: rolling update": workload.STATEFUL_UPDATE_FIELDS,
  DaemonSet: workload.DAEMON_SET_FIELDS,
  Job: job.JOB_FIELDS,
  CronJob: job.CRON_JOB_FIELDS,
  "pod (a template's spec)": pod.POD_FIELDS,
  "pod: security context": container.POD_SECURITY_FIELDS,
  "pod: DNS": pod.DNS_FIELDS,
  "pod: toleration": placement.TOLERATION_FIELDS,
  "pod: term of an affinity": placement.POD_TERM_FIELDS,
  "pod: topology spread constraint": placement.SPREAD_FIELDS,
  container: container.CONTAINER_FIELDS,
  "container: port": container.PORT_FIELDS,
  "container: source of a variable": container.VALUE_FROM_FIELDS,
  "container: probe": container.PROBE_FIELDS,
  "container: lifecycle": container.LIFECYCLE_FIELDS,
  "container: hook": container.HOOK_FIELDS,
  "container: mount": container.MOUNT_FIELDS,
  "container: resources": container.RESOURCES_FIELDS,
  "container: security context": container.CONTAINER_SECURITY_FIELDS,
  volume: volume.VOLUME_FIELDS,
  Service: service.SERVICE_FIELDS,
  "Service: port": service.SERVICE_PORT_FIELDS,
  Ingress: ingress.INGRESS_FIELDS,
  "Ingress: backend": ingress.BACKEND_FIELDS,
  HTTPRoute: route.HTTP_ROUTE_FIELDS,
  "HTTPRoute: gateway": route.PARENT_FIELDS,
  "HTTPRoute: rule": route.ROUTE_RULE_FIELDS,
  "HTTPRoute: filter": route.FILTER_FIELDS,
  "HTTPRoute: backend": route.ROUTE_BACKEND_FIELDS,
  HorizontalPodAutoscaler: autoscaler.AUTOSCALER_FIELDS,
  "HorizontalPodAutoscaler: metric": autoscaler.METRIC_FIELDS,
  "HorizontalPodAutoscaler: scaling down": autoscaler.SCALE_DOWN_FIELDS,
  "HorizontalPodAutoscaler: scaling up": autoscaler.SCALE_UP_FIELDS,
  ConfigMap: object.CONFIG_MAP_FIELDS,
  Secret: object.SECRET_FIELDS,
  PersistentVolumeClaim: object.CLAIM_FIELDS,
  PriorityClass: object.PRIORITY_CLASS_FIELDS,
};

/**
 * Renders the fields of each message: converted ones, those that can't be converted, and those
 * without effect.
 */
export function renderKubernetes(): string {
  const sections = Object.entries(MESSAGES).map(([message, rules]) => section(message, rules));
  return `${BEGIN}\n${sections.join("\n")}\n${END}`;
}

function section(message: string, rules: Rules): string {
  const carried: string[] = [];
  const rows: string[] = [];
  for (const [name, rule] of Object.entries(rules)) {
    if (typeof rule === "function" || ("noEffect" in rule && rule.noEffect === "read on its own"))
      carried.push(`\`${name}\``);
    else if ("lost" in rule) rows.push(`| \`${name}\` | lost: ${rule.lost} |`);
    else rows.push(`| \`${name}\` | no effect: ${rule.noEffect} |`);
  }
  const table = rows.length === 0 ? "" : `\n| field | |\n| --- | --- |\n${rows.join("\n")}\n`;
  const read = carried.length === 0 ? "" : `\nCarried over: ${carried.join(", ")}.\n`;
  return `### ${message}\n${read}${table}`;
}
