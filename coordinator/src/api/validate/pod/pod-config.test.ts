import { describeSpec, inPodConfig } from "../../../../test/support/spec-cases.ts";

const toleration = (fields: object) => inPodConfig({ tolerations: [fields] });
const dns = (dnsConfig: object, dnsPolicy = "") => inPodConfig({ dnsConfig, dnsPolicy });
const AT = "pod_config.tolerations[0]";

describeSpec("container_service", "pod config", [
  [
    "invalid opaque ports",
    inPodConfig({ annotations: { "config.linkerd.io/opaque-ports": "5432,70000" } }),
    ["pod_config.annotations[config.linkerd.io/opaque-ports]"],
  ],
  ["opaque ports", inPodConfig({ annotations: { "config.linkerd.io/opaque-ports": "5432,sql" } }), []],
  ["an unknown restart policy", inPodConfig({ restartPolicy: "Sometimes" }), ["pod_config.restart_policy"]],
  ["a week of grace", inPodConfig({ terminationGracePeriodSeconds: 604_800 }), []],
  [
    "more",
    inPodConfig({ terminationGracePeriodSeconds: 604_801 }),
    ["pod_config.termination_grace_period_seconds"],
  ],
  [
    "a service account with a slash",
    inPodConfig({ serviceAccountName: "a/b" }),
    ["pod_config.service_account_name"],
  ],
  [
    "a priority class in capitals",
    inPodConfig({ priorityClassName: "High" }),
    ["pod_config.priority_class_name"],
  ],
  [
    "a runtime class with a space",
    inPodConfig({ runtimeClassName: "a b" }),
    ["pod_config.runtime_class_name"],
  ],
  [
    "a pull secret without a name",
    inPodConfig({ imagePullSecrets: ["a", ""] }),
    ["pod_config.image_pull_secrets[1]"],
  ],
  [
    "33 pull secrets",
    inPodConfig({ imagePullSecrets: Array.from({ length: 33 }, () => "a") }),
    ["pod_config.image_pull_secrets"],
  ],
  [
    "a node's label with a space",
    inPodConfig({ nodeSelector: { zone: "a b" } }),
    ["pod_config.node_selector[zone]"],
  ],
]);

describeSpec("container_service", "DNS", [
  ["a policy", dns({}, "Default"), []],
  ["an unknown policy", dns({}, "Cluster"), ["pod_config.dns_policy"]],
  ["None with a server", dns({ nameservers: ["192.0.2.53"] }, "None"), []],
  ["None without", inPodConfig({ dnsPolicy: "None" }), ["pod_config.dns_config.nameservers"]],
  [
    "four servers",
    dns({ nameservers: ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"] }),
    ["pod_config.dns_config.nameservers"],
  ],
  ["a server's name", dns({ nameservers: ["dns.example"] }), ["pod_config.dns_config.nameservers[0]"]],
  ["search domains", dns({ searches: ["a.example", "b.example.", "."] }), []],
  ["a search domain of two words", dns({ searches: ["a b"] }), ["pod_config.dns_config.searches[0]"]],
  [
    "33 search domains",
    dns({ searches: Array.from({ length: 33 }, () => "a") }),
    ["pod_config.dns_config.searches"],
  ],
  [
    "search domains of more than 2,048 characters",
    dns({
      searches: Array.from(
        { length: 9 },
        () => `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(60)}`,
      ),
    }),
    ["pod_config.dns_config.searches"],
  ],
  ["an option", dns({ options: [{ name: "ndots", value: "2" }, { name: "use-vc" }] }), []],
  [
    "33 options",
    dns({ options: Array.from({ length: 33 }, () => ({ name: "ndots" })) }),
    ["pod_config.dns_config.options"],
  ],
  ["an option without a name", dns({ options: [{ value: "2" }] }), ["pod_config.dns_config.options[0].name"]],
  [
    "an option of two lines",
    dns({ options: [{ name: "a", value: "1\nnameserver 192.0.2.1" }] }),
    ["pod_config.dns_config.options[0].value"],
  ],
]);

describeSpec("container_service", "tolerations", [
  ["a key", toleration({ key: "gpu", value: "yes", effect: "NoSchedule" }), []],
  ["everything", toleration({ operator: "Exists" }), []],
  ["nothing at all", toleration({}), [`${AT}.key`]],
  ["no key for Equal", toleration({ operator: "Equal", value: "a" }), [`${AT}.key`]],
  ["a value for Exists", toleration({ key: "a", operator: "Exists", value: "b" }), [`${AT}.value`]],
  ["a broken value", toleration({ key: "a", value: "b c" }), [`${AT}.value`]],
  ["a broken key", toleration({ key: "a b" }), [`${AT}.key`]],
  ["an unknown operator", toleration({ key: "a", operator: "In" }), [`${AT}.operator`]],
  ["an unknown effect", toleration({ key: "a", effect: "Evict" }), [`${AT}.effect`]],
  ["seconds for NoExecute", toleration({ key: "a", effect: "NoExecute", tolerationSeconds: 5n }), []],
  ["at once for NoExecute", toleration({ key: "a", effect: "NoExecute", tolerationSeconds: -1n }), []],
  [
    "seconds for another effect",
    toleration({ key: "a", effect: "NoSchedule", tolerationSeconds: 5n }),
    [`${AT}.toleration_seconds`],
  ],
  ["seconds for every effect", toleration({ key: "a", tolerationSeconds: 5n }), [`${AT}.toleration_seconds`]],
  [
    "seconds beyond 31 bits",
    toleration({ key: "a", effect: "NoExecute", tolerationSeconds: 2n ** 31n }),
    [`${AT}.toleration_seconds`],
  ],
  [
    "65",
    inPodConfig({ tolerations: Array.from({ length: 65 }, () => ({ key: "a" })) }),
    ["pod_config.tolerations"],
  ],
]);
