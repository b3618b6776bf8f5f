import type { Field } from "../conversion/field.ts";
import { cpu, eachField, losing, memory, pairs } from "./read-amounts.ts";
import type { Mapping, ServiceDraft } from "./service-draft.ts";

/** Reads the field `deploy` of a service. */
export function readDeploy(deploy: Field, draft: ServiceDraft): void {
  eachField(deploy, {
    endpoint_mode: (field) => {
      const mode = field.text();
      if (mode === "dnsrr") draft.serviceType = "Headless";
      else if (mode !== "vip") field.fail(`"${mode}" is neither vip nor dnsrr`);
    },
    labels: (field) => {
      for (const [name, value] of pairs(field)) draft.annotations[name] = value ?? "";
    },
    mode: (field) => {
      const mode = field.text();
      if (mode !== "replicated")
        field.lose(`"${mode}" has no counterpart: the service gets a number of replicas`);
    },
    placement: (field) => readPlacement(field, draft),
    replicas: (field) => {
      draft.replicas = field.whole();
    },
    resources: (field) => readResources(field, draft),
    restart_policy: (field) => readRestartPolicy(field, draft),
    rollback_config: losing("has no counterpart: a failed update is rolled back as it was rolled out"),
    update_config: (field) => {
      draft.update = readUpdate(field);
    },
  });
}

function readResources(resources: Field, { limits, requests }: ServiceDraft): void {
  eachField(resources, {
    limits: (field) =>
      eachField(field, {
        cpus: (value) => {
          limits.cpu = cpu(value);
        },
        memory: (value) => {
          limits.memory = memory(value);
        },
        pids: losing("is a limit that containers don't have here"),
      }),
    reservations: (field) =>
      eachField(field, {
        cpus: (value) => {
          requests.cpu = cpu(value);
        },
        memory: (value) => {
          requests.memory = memory(value);
        },
        devices: losing("needs an extended resource of the node: resources.limits.extended"),
        generic_resources: losing("needs an extended resource of the node"),
      }),
  });
}

function readRestartPolicy(policy: Field, { pod }: ServiceDraft): void {
  const fixed = losing("has no counterpart: restarts wait for times that grow from 1 s on");
  eachField(policy, {
    condition: (field) => {
      const policies: Readonly<Record<string, string>> = {
        any: "Always",
        "on-failure": "OnFailure",
        none: "Never",
      };
      const condition = field.text();
      pod.restart_policy =
        policies[condition] ?? field.fail(`"${condition}" is none of any, on-failure and none`);
    },
    delay: fixed,
    max_attempts: fixed,
    window: fixed,
  });
}

function readUpdate(update: Field): Mapping {
  let parallelism = 1;
  let isStartFirst = false;
  const none = losing("has no counterpart: pods are replaced as soon as new ones are ready");
  eachField(update, {
    parallelism: (field) => {
      parallelism = field.whole();
    },
    order: (field) => {
      const order = field.text();
      if (order !== "start-first" && order !== "stop-first")
        field.fail(`"${order}" is neither start-first nor stop-first`);
      isStartFirst = order === "start-first";
    },
    failure_action: (field) => {
      if (field.text() !== "rollback") field.lose("has no counterpart: a failed update is rolled back");
    },
    delay: none,
    monitor: none,
    max_failure_ratio: none,
  });
  // 0 means all pods at the same time.
  const count = parallelism === 0 ? "100%" : String(parallelism);
  const rolling = isStartFirst
    ? { max_unavailable: "0", max_surge: count }
    : { max_unavailable: count, max_surge: "0" };
  return { type: "RollingUpdate", rolling_update: rolling };
}

const NODE_LABEL = /^node\.labels\.(\S+?)\s*(==|!=)\s*(\S+)$/;

function readPlacement(placement: Field, { constraints }: ServiceDraft): void {
  eachField(placement, {
    constraints: (field) => {
      for (const item of field.items()) {
        const text = item.text().replace(/^node\.hostname\b/, "node.labels.kubernetes.io/hostname");
        const [, key, operator, value] = NODE_LABEL.exec(text) ?? [];
        if (key === undefined || value === undefined)
          item.lose("has no counterpart: nodes are chosen by node.hostname and node.labels.NAME");
        else constraints.push({ key, value, equal: operator === "==" });
      }
    },
    preferences: losing("is read from manifests only: pod_config.topology_spread_constraints"),
    max_replicas_per_node: losing("is read from manifests only: pod_config.topology_spread_constraints"),
  });
}
