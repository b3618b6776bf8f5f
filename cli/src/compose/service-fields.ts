import type { Field } from "../conversion/field.ts";
import { readDeploy } from "./deploy-fields.ts";
import { readExtension } from "./extension-fields.ts";
import { readExposed, readPorts } from "./port-fields.ts";
import { cpu, memory, pairs, seconds, texts } from "./read-amounts.ts";
import type { ServiceDraft } from "./service-draft.ts";
import { splitWords } from "./split-words.ts";
import { readConfigs, readSecrets, readTmpfs, readVolumes } from "./volume-fields.ts";

/**
 * The rule for one field of a service: a function that converts it, or the reason why it can't be
 * converted.
 */
type Rule = ((field: Field, draft: ServiceDraft) => void) | { readonly lost: string };

const lost = (reason: string): Rule => ({ lost: reason });
const HOST_ONLY = lost("is a setting of the host that pods don't have");
const NO_LIMIT = lost("is a limit that containers don't have here");
const BUILD = "an image is not built here: build and push it, and name it with image";

/** The rules for all fields of a service in the Compose specification. */
export const SERVICE_FIELDS: Readonly<Record<string, Rule>> = {
  annotations: readAnnotations,
  attach: () => {},
  blkio_config: NO_LIMIT,
  build: lost(BUILD),
  cap_add: (field, { security }) => capabilities(field, security, "add"),
  cap_drop: (field, { security }) => capabilities(field, security, "drop"),
  cgroup: HOST_ONLY,
  cgroup_parent: HOST_ONLY,
  command: (field, { container }) => {
    container.args = words(field);
  },
  configs: readConfigs,
  container_name: lost(
    "has no counterpart: pods get names of their own, and their service the name of the service",
  ),
  cpu_count: NO_LIMIT,
  cpu_percent: NO_LIMIT,
  cpu_period: NO_LIMIT,
  cpu_quota: NO_LIMIT,
  cpu_rt_period: NO_LIMIT,
  cpu_rt_runtime: NO_LIMIT,
  cpu_shares: NO_LIMIT,
  cpus: (field, { limits }) => {
    limits.cpu = cpu(field);
  },
  cpuset: NO_LIMIT,
  credential_spec: HOST_ONLY,
  depends_on: readDependencies,
  deploy: readDeploy,
  develop: () => {},
  device_cgroup_rules: HOST_ONLY,
  devices: lost("is not handed to containers: ask for an extended resource of the node in a manifest"),
  dns: (field, { dns }) => {
    dns.nameservers = texts(field);
  },
  dns_opt: (field, { dns }) => {
    dns.options = texts(field).map((text) => {
      const [name = "", ...value] = text.split(":");
      return value.length === 0 ? { name } : { name, value: value.join(":") };
    });
  },
  dns_search: (field, { dns }) => {
    dns.searches = texts(field);
  },
  domainname: lost("has no counterpart: services have names in DNS"),
  entrypoint: (field, { container }) => {
    container.command = words(field);
  },
  env_file: lost("is not read: write the variables to environment, or keep them in a config map or a secret"),
  environment: readEnvironment,
  expose: readExposed,
  extends: lost("is not read: write the fields out"),
  external_links: lost("has no counterpart: services are reached by their names"),
  extra_hosts: lost("has no counterpart: keep names in DNS"),
  gpus: lost("needs an extended resource of the node: resources.limits.extended in a manifest"),
  group_add: (field, { podSecurity }) => {
    podSecurity.supplemental_groups = field.items().map((item) => item.whole());
  },
  healthcheck: readHealthcheck,
  hostname: lost("has no counterpart: a pod's host name is its own name"),
  image: (field, { container }) => {
    container.image = field.text();
  },
  init: (field) => {
    if (field.switch()) field.lose("has no counterpart: use an image that reaps its processes");
  },
  ipc: HOST_ONLY,
  isolation: HOST_ONLY,
  label_file: lost("is not read: write the labels to annotations"),
  labels: readAnnotations,
  links: lost("has no counterpart: services are reached by their names"),
  logging: lost("has no counterpart: the node's agent keeps the logs"),
  mac_address: HOST_ONLY,
  mem_limit: (field, { limits }) => {
    limits.memory = memory(field);
  },
  mem_reservation: (field, { requests }) => {
    requests.memory = memory(field);
  },
  mem_swappiness: NO_LIMIT,
  memswap_limit: NO_LIMIT,
  models: lost("has no counterpart"),
  network_mode: (field, { pod }) => {
    const mode = field.text();
    if (mode === "host") pod.host_network = true;
    else if (mode !== "bridge") field.lose(`"${mode}" has no counterpart: pods have a network of their own`);
  },
  networks: lost("does not separate services here: all pods of the fleet reach one another"),
  oom_kill_disable: NO_LIMIT,
  oom_score_adj: NO_LIMIT,
  pid: HOST_ONLY,
  pids_limit: NO_LIMIT,
  platform: lost(
    "has no counterpart: require kubernetes.io/arch of the nodes by deploy.placement.constraints",
  ),
  ports: readPorts,
  post_start: lost("is read from manifests only: lifecycle.post_start"),
  pre_stop: lost("is read from manifests only: lifecycle.pre_stop"),
  privileged: (field, { security }) => {
    security.privileged = field.switch();
  },
  profiles: lost("has no counterpart: keep optional services in a file of their own"),
  provider: lost("has no counterpart"),
  pull_policy: (field, { container }) => {
    const policies: Readonly<Record<string, string>> = {
      always: "Always",
      never: "Never",
      missing: "IfNotPresent",
      if_not_present: "IfNotPresent",
    };
    const text = field.text();
    if (text === "build") field.lose(BUILD);
    else container.image_pull_policy = policies[text] ?? field.lose(`"${text}" has no counterpart`);
  },
  read_only: (field, { security }) => {
    security.read_only_root_filesystem = field.switch();
  },
  restart: (field, { pod }) => {
    const text = field.text();
    if (text === "no" || text === "on-failure") pod.restart_policy = text === "no" ? "Never" : "OnFailure";
    else if (/^on-failure:\d+$/.test(text)) {
      pod.restart_policy = "OnFailure";
      field.lose("limits how often it restarts, which has no counterpart");
    } else if (text !== "always" && text !== "unless-stopped")
      field.fail(`"${text}" is none of no, always, on-failure and unless-stopped`);
  },
  runtime: (field, { pod }) => {
    pod.runtime_class_name = field.text();
  },
  scale: (field, draft) => {
    draft.replicas = field.whole();
  },
  secrets: readSecrets,
  security_opt: lost("is read from manifests only: security_context"),
  shm_size: (field, { mounts }) => {
    const size_limit = memory(field);
    mounts.push({
      source: { empty_dir: { medium: "Memory", size_limit } },
      path: "/dev/shm",
      readOnly: false,
    });
  },
  stdin_open: (field, { container }) => {
    container.stdin = field.switch();
  },
  stop_grace_period: (field, { pod }) => {
    pod.termination_grace_period_seconds = seconds(field);
  },
  stop_signal: lost("has no counterpart: the image's STOPSIGNAL is used"),
  storage_opt: HOST_ONLY,
  sysctls: HOST_ONLY,
  tmpfs: readTmpfs,
  tty: (field, { container }) => {
    container.tty = field.switch();
  },
  ulimits: NO_LIMIT,
  use_api_socket: HOST_ONLY,
  user: (field, { security }) => {
    const [, user, group] = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(field.text()) ?? [];
    if (user === undefined) field.lose("must be numbers: names of users are known in the image only");
    else security.run_as_user = Number(user);
    if (group !== undefined) security.run_as_group = Number(group);
  },
  userns_mode: HOST_ONLY,
  uts: HOST_ONLY,
  volumes: readVolumes,
  volumes_from: lost("has no counterpart: containers of different pods share claims"),
  working_dir: (field, { container }) => {
    container.working_dir = field.text();
  },
  "x-forage": readExtension,
};

/** Reads the words of a command: a list, or a text that is split like a shell's command line. */
export function words(field: Field): readonly string[] {
  if (field.kind !== "scalar") return texts(field);
  return splitWords(field.text()) ?? field.fail("has a quote that is not closed") ?? [];
}

function capabilities(field: Field, security: Record<string, unknown>, verb: "add" | "drop"): void {
  const names = field.items().map((item) => item.text().replace(/^CAP_/i, "").toUpperCase());
  security.capabilities = { ...(security.capabilities as object | undefined), [verb]: names };
}

function readEnvironment(field: Field, { variables }: ServiceDraft): void {
  for (const [name, written, at] of pairs(field)) {
    const value = written ?? field.env[name];
    if (value === undefined) at.fail(`needs the variable ${name}, which is not set here`);
    else variables.push({ name, value });
  }
}

function readAnnotations(field: Field, { annotations }: ServiceDraft): void {
  for (const [name, value] of pairs(field)) annotations[name] = value ?? "";
}

function readDependencies(field: Field, { dependencies }: ServiceDraft): void {
  if (field.kind === "list") {
    dependencies.push(...field.items().map((item) => item.text()));
    return;
  }
  for (const [name, condition] of field.entries()) {
    dependencies.push(name);
    for (const [key, value] of condition.entries()) {
      const isWait = key === "condition" && value.text() !== "service_completed_successfully";
      if (isWait || (key === "required" && value.switch()) || (key === "restart" && !value.switch()))
        continue;
      value.lose("has no counterpart: the service waits until the other one is ready");
    }
  }
}

function readHealthcheck(field: Field, { container }: ServiceDraft): void {
  const probe: Record<string, unknown> = {};
  let isOff = false;
  for (const [key, value] of field.entries()) {
    if (key === "disable") isOff ||= value.switch();
    else if (key === "test") {
      const [kind, ...rest] = value.kind === "scalar" ? ["CMD-SHELL", value.text()] : texts(value);
      if (kind === "NONE") isOff = true;
      else if (kind === "CMD") probe.exec = { command: rest };
      else if (kind === "CMD-SHELL") probe.exec = { command: ["/bin/sh", "-c", rest.join(" ")] };
      else value.fail("must begin with CMD, CMD-SHELL or NONE");
    } else if (key === "interval") probe.period_seconds = seconds(value);
    else if (key === "timeout") probe.timeout_seconds = seconds(value);
    else if (key === "retries") probe.failure_threshold = value.whole();
    else if (key === "start_period" || key === "start_interval") seconds(value);
    else value.fail("is an unknown field");
  }
  if (isOff) return;
  if (probe.exec === undefined) field.lose("has no test: write out the one of the image");
  else container.readiness_probe = probe;
}
