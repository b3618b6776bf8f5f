import { describeSpec, inContainer } from "../../../../test/support/spec-cases.ts";

const resources = (requests: object, limits?: object) => inContainer({ resources: { requests, limits } });
const gpu = { "nvidia.com/gpu": "1" };
const requested = "container.resources.requests";
const limited = "container.resources.limits";

describeSpec("container_service", "resources", [
  ["nothing", resources({}), []],
  ["less than the limit", resources({ cpu: "100m", memory: "64Mi" }, { cpu: "0.1", memory: "67108864" }), []],
  ["more than the limit", resources({ cpu: "101m" }, { cpu: "0.1" }), [`${requested}.cpu`]],
  ["no quantity", resources({ memory: "64MB" }), [`${requested}.memory`]],
  ["a negative quantity", resources({}, { ephemeralStorage: "-1Gi" }), [`${limited}.ephemeral_storage`]],
  ["more memory than there is", resources({ memory: "10E" }), [`${requested}.memory`]],
  ["a device", resources({ extended: gpu }, { extended: gpu }), []],
  ["a device by its limit alone", resources({}, { extended: gpu }), []],
  ["a device without a limit", resources({ extended: gpu }), [`${requested}.extended[nvidia.com/gpu]`]],
  ["no device", resources({ extended: { "nvidia.com/gpu": "0" } }), []],
  [
    "fewer devices than the limit",
    resources({ extended: gpu }, { extended: { "nvidia.com/gpu": "2" } }),
    [`${requested}.extended[nvidia.com/gpu]`],
  ],
  [
    "half a device",
    resources({}, { extended: { "nvidia.com/gpu": "500m" } }),
    [`${limited}.extended[nvidia.com/gpu]`],
  ],
  ["a thousand devices", resources({}, { extended: { "nvidia.com/gpu": "1k" } }), []],
  ["a device without a vendor", resources({}, { extended: { gpu: "1" } }), [`${limited}.extended[gpu]`]],
  ["a resource with a field", resources({}, { extended: { cpu: "1" } }), [`${limited}.extended[cpu]`]],
  [
    "one of Kubernetes' own",
    resources({}, { extended: { "kubernetes.io/x": "1" } }),
    [`${limited}.extended[kubernetes.io/x]`],
  ],
  [
    "a device's name with a space",
    resources({}, { extended: { "a.b/c d": "1" } }),
    [`${limited}.extended[a.b/c d]`],
  ],
]);
