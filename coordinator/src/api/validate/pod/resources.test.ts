import { describeSpec, inContainer } from "../../../../test/support/spec-cases.ts";

const resources = (requests: object, limits?: object) => inContainer({ resources: { requests, limits } });
const GPU = { "nvidia.com/gpu": "1" };
const REQUESTED = "container.resources.requests";
const LIMITED = "container.resources.limits";

describeSpec("container_service", "resources", [
  ["nothing", resources({}), []],
  ["less than the limit", resources({ cpu: "100m", memory: "64Mi" }, { cpu: "0.1", memory: "67108864" }), []],
  ["more than the limit", resources({ cpu: "101m" }, { cpu: "0.1" }), [`${REQUESTED}.cpu`]],
  ["no quantity", resources({ memory: "64MB" }), [`${REQUESTED}.memory`]],
  ["a negative quantity", resources({}, { ephemeralStorage: "-1Gi" }), [`${LIMITED}.ephemeral_storage`]],
  ["more memory than there is", resources({ memory: "10E" }), [`${REQUESTED}.memory`]],
  ["a device", resources({ extended: GPU }, { extended: GPU }), []],
  ["a device by its limit alone", resources({}, { extended: GPU }), []],
  ["a device without a limit", resources({ extended: GPU }), [`${REQUESTED}.extended[nvidia.com/gpu]`]],
  ["no device", resources({ extended: { "nvidia.com/gpu": "0" } }), []],
  [
    "fewer devices than the limit",
    resources({ extended: GPU }, { extended: { "nvidia.com/gpu": "2" } }),
    [`${REQUESTED}.extended[nvidia.com/gpu]`],
  ],
  [
    "half a device",
    resources({}, { extended: { "nvidia.com/gpu": "500m" } }),
    [`${LIMITED}.extended[nvidia.com/gpu]`],
  ],
  ["a thousand devices", resources({}, { extended: { "nvidia.com/gpu": "1k" } }), []],
  ["a device without a vendor", resources({}, { extended: { gpu: "1" } }), [`${LIMITED}.extended[gpu]`]],
  ["a resource with a field", resources({}, { extended: { cpu: "1" } }), [`${LIMITED}.extended[cpu]`]],
  [
    "one of Kubernetes' own",
    resources({}, { extended: { "kubernetes.io/x": "1" } }),
    [`${LIMITED}.extended[kubernetes.io/x]`],
  ],
  [
    "a device's name with a space",
    resources({}, { extended: { "a.b/c d": "1" } }),
    [`${LIMITED}.extended[a.b/c d]`],
  ],
]);
