import { describeSpec, inContainer, type SpecCase } from "../../../../test/support/spec-cases.ts";

const variable = ($case: string, value: unknown) =>
  inContainer({ env: [{ name: "A", valueSource: { $case, value } }] });
const fieldRef = (text: string, fine: boolean): SpecCase => [
  `the field ${text}`,
  variable("fieldRef", text),
  fine ? [] : ["container.env[0].field_ref"],
];
const resourceRef = (text: string, fine: boolean): SpecCase => [
  `the resource ${text}`,
  variable("resourceFieldRef", text),
  fine ? [] : ["container.env[0].resource_field_ref"],
];

describeSpec("container_service", "env", [
  ["a value of lines", variable("value", "a\nb"), []],
  ["no value", inContainer({ env: [{ name: "A" }] }), []],
  ["a NUL in a value", variable("value", "a\0"), ["container.env[0].value"]],
  ["a value of 128 KiB", variable("value", "x".repeat(131_072)), ["container.env[0].value"]],
  ["a name with =", inContainer({ env: [{ name: "A=B" }] }), ["container.env[0].name"]],
  [
    "a name twice",
    inContainer({ env: [{ name: "A" }, { name: "B" }, { name: "A" }] }),
    ["container.env[2].name"],
  ],
  ["a secret's key", variable("secretRef", { secretName: "db", key: "p.w" }), []],
  ["no secret", variable("secretRef", { key: "p" }), ["container.env[0].secret_ref.secret_name"]],
  [
    "a secret's key with a slash",
    variable("secretRef", { secretName: "a", key: "a/b" }),
    ["container.env[0].secret_ref.key"],
  ],
  [
    "a config's name in capitals",
    variable("configRef", { configName: "A", key: "b" }),
    ["container.env[0].config_ref.config_name"],
  ],
  ["no key of a config", variable("configRef", { configName: "a" }), ["container.env[0].config_ref.key"]],
]);

describeSpec("container_service", "references to the pod's own fields", [
  fieldRef("metadata.name", true),
  fieldRef("metadata.namespace", true),
  fieldRef("metadata.uid", true),
  fieldRef("spec.nodeName", true),
  fieldRef("spec.serviceAccountName", true),
  fieldRef("status.hostIP", true),
  fieldRef("status.podIP", true),
  fieldRef("metadata.labels['a.example/B']", true),
  fieldRef("metadata.annotations['a.Example/B']", true),
  fieldRef("", false),
  fieldRef("metadata.labels", false),
  fieldRef("metadata.labels['']", false),
  fieldRef("metadata.labels['a b']", false),
  fieldRef("metadata.labels['A.Example/b']", false),
  fieldRef('metadata.labels["a"]', false),
  fieldRef("metadata.labels['a']x", false),
  fieldRef("spec.containers[0]", false),
  fieldRef("status.podip", false),
  resourceRef("limits.cpu", true),
  resourceRef("requests.memory", true),
  resourceRef("limits.ephemeral-storage", true),
  resourceRef("cpu", false),
  resourceRef("limits.nvidia.com/gpu", false),
  resourceRef("limits.ephemeral_storage", false),
]);
