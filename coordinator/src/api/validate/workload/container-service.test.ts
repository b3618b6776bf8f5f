import { CONTAINER } from "../../../../test/support/forest/workload-samples.ts";
import { describeSpec } from "../../../../test/support/spec-cases.ts";

const rolling = (maxUnavailable: string, maxSurge: string, type = "") => ({
  updateStrategy: { type, rollingUpdate: { maxUnavailable, maxSurge } },
});
const UNAVAILABLE = "update_strategy.rolling_update.max_unavailable";
const SURGE = "update_strategy.rolling_update.max_surge";

describeSpec("container_service", "scaling", [
  ["no container", { container: undefined }, ["container"]],
  ["10,000 replicas", { scaling: { replicas: 10_000 } }, []],
  ["10,001 replicas", { scaling: { replicas: 10_001 } }, ["scaling.replicas"]],
]);

describeSpec("container_service", "update strategy", [
  ["Recreate", { updateStrategy: { type: "Recreate" } }, []],
  ["an unknown type", { updateStrategy: { type: "BlueGreen" } }, ["update_strategy.type"]],
  ["a type in small letters", { updateStrategy: { type: "recreate" } }, ["update_strategy.type"]],
  ["numbers for Recreate", rolling("1", "", "Recreate"), ["update_strategy.rolling_update"]],
  ["a number and a percentage", rolling("1", "25%"), []],
  ["more than one pod for each", rolling("", "300%"), []],
  ["unavailable above 100%", rolling("101%", ""), [UNAVAILABLE]],
  ["a fraction", rolling("0.5", ""), [UNAVAILABLE]],
  ["a negative number", rolling("", "-1"), [SURGE]],
  ["a percentage with a fraction", rolling("", "2.5%"), [SURGE]],
  ["a number beyond 32 bits", rolling("", "9999999999"), [SURGE]],
  ["0 of one", rolling("0", "1"), []],
  ["0 of one, the other by default", rolling("0", ""), []],
  ["0 of both", rolling("0", "0%"), [UNAVAILABLE]],
  ["00 of both", rolling("00%", "0"), [UNAVAILABLE]],
]);

describeSpec("container_service", "names within a pod", [
  ["different containers", { sidecars: [{ ...CONTAINER, name: "side" }] }, []],
  ["a sidecar named as the container", { sidecars: [CONTAINER] }, ["sidecars[0].name"]],
  [
    "an init container with the name of a sidecar",
    { sidecars: [{ ...CONTAINER, name: "x" }], initContainers: [{ ...CONTAINER, name: "x" }] },
    ["init_containers[0].name"],
  ],
  [
    "33 sidecars",
    { sidecars: Array.from({ length: 33 }, (_, i) => ({ ...CONTAINER, name: `s${i}` })) },
    ["sidecars"],
  ],
  [
    "a port name in two containers",
    {
      container: { ...CONTAINER, ports: [{ name: "http", containerPort: 80 }] },
      sidecars: [{ ...CONTAINER, name: "side", ports: [{ name: "http", containerPort: 81 }] }],
    },
    ["sidecars[0].ports[0].name"],
  ],
  [
    "a port name in a container and an init container",
    {
      container: { ...CONTAINER, ports: [{ name: "http", containerPort: 80 }] },
      initContainers: [{ ...CONTAINER, name: "init", ports: [{ name: "http", containerPort: 80 }] }],
    },
    [],
  ],
  [
    "two volumes with one name",
    {
      volumes: [
        { name: "v", source: { $case: "emptyDir", value: {} } },
        { name: "v", source: { $case: "emptyDir", value: {} } },
      ],
    },
    ["volumes[1].name"],
  ],
]);

const annotations = (values: object, spec: object = {}) => ({ podConfig: { annotations: values }, ...spec });
const SETTINGS = "pod_config.annotations";

describeSpec("container_service", "annotations about rollouts", [
  [
    "valid rollout annotations",
    annotations({
      "forage.dev/change-cause": "Mend the shop",
      "forage.dev/min-ready-seconds": "30",
      "forage.dev/progress-deadline": "1h30m",
      "forage.dev/rollback": "off",
      "forage.dev/canary": "10%",
      "example.com/canary": "any",
    }),
    [],
  ],
  [
    "invalid rollout annotations",
    annotations({
      "forage.dev/min-ready-seconds": "1m",
      "forage.dev/progress-deadline": "600",
      "forage.dev/rollback": "false",
      "forage.dev/canary": "0",
    }),
    ["min-ready-seconds", "progress-deadline", "rollback", "canary"].map(
      (name) => `${SETTINGS}[forage.dev/${name}]`,
    ),
  ],
  [
    "a progress deadline of more than a day",
    annotations({ "forage.dev/progress-deadline": "25h" }),
    [`${SETTINGS}[forage.dev/progress-deadline]`],
  ],
  [
    "a canary of more than 100 %",
    annotations({ "forage.dev/canary": "101%" }),
    [`${SETTINGS}[forage.dev/canary]`],
  ],
  [
    "a canary with Recreate",
    annotations({ "forage.dev/canary": "1" }, { updateStrategy: { type: "Recreate" } }),
    [`${SETTINGS}[forage.dev/canary]`],
  ],
]);

const annotated = (key: string, value = "1") => ({ podConfig: { annotations: { [key]: value } } });
const at = (key: string) => [`pod_config.annotations[${key}]`];

describeSpec("container_service", "annotations of Forage's own", [
  ["one that is known", annotated("forage.dev/canary"), []],
  ["one of somebody else", annotated("example.com/canary"), []],
  ["a slip of the pen", annotated("forage.dev/cannary"), at("forage.dev/cannary")],
  ["one of jobs", annotated("forage.dev/backoff-limit"), at("forage.dev/backoff-limit")],
]);

describeSpec("job", "annotations of Forage's own", [
  ["one of jobs", annotated("forage.dev/backoff-limit"), []],
  ["one of services", annotated("forage.dev/canary"), at("forage.dev/canary")],
  ["metrics, reported once", annotated("forage.dev/metrics-port", "80"), at("forage.dev/metrics-port")],
  ["a slip of the pen", annotated("forage.dev/depend-on"), at("forage.dev/depend-on")],
]);
