import { CONTAINER } from "../../../../test/support/forest/workload-samples.ts";
import { describeSpec } from "../../../../test/support/spec-cases.ts";

const sized = (name: string, requests: object, limits?: object) => ({
  ...CONTAINER,
  name,
  ports: [],
  resources: { requests, limits },
});
const gpus = (count: string) => ({ extended: { "nvidia.com/gpu": count } });

describeSpec("container_service", "sums of resources", [
  [
    "two containers that fit a host together",
    { container: sized("a", { memory: "4Pi" }), sidecars: [sized("b", { memory: "3Pi" })] },
    [],
  ],
  [
    "two containers that are too large only together",
    { container: sized("a", { memory: "5Pi" }), sidecars: [sized("b", { memory: "5Pi" })] },
    ["sidecars[0].resources.requests.memory"],
  ],
  [
    "a limit that stands for the request",
    { container: sized("a", { memory: "5Pi" }), sidecars: [sized("b", {}, { memory: "5Pi" })] },
    ["sidecars[0].resources.limits.memory"],
  ],
  [
    "an init container, which runs before the others",
    { container: sized("a", { memory: "5Pi" }), initContainers: [sized("b", { memory: "5Pi" })] },
    [],
  ],
  [
    "too many thousandths of a cpu",
    { container: sized("a", { cpu: "6000000000000" }), sidecars: [sized("b", { cpu: "6000000000000" })] },
    ["sidecars[0].resources.requests.cpu"],
  ],
  [
    "too many devices",
    {
      container: sized("a", {}, gpus("9000000000000000")),
      sidecars: [sized("b", {}, gpus("9000000000000000"))],
    },
    ["sidecars[0].resources.limits.extended[nvidia.com/gpu]"],
  ],
]);
