import { describeSpec, inContainer } from "../../../../test/support/spec-cases.ts";

const ports = (...list: readonly object[]) => inContainer({ ports: list });

describeSpec("container_service", "ports", [
  ["TCP and UDP on one number", ports({ containerPort: 53 }, { containerPort: 53, protocol: "UDP" }), []],
  ["no number", ports({ name: "http" }), ["container.ports[0].container_port"]],
  ["65536", ports({ containerPort: 65_536 }), ["container.ports[0].container_port"]],
  ["an unknown protocol", ports({ containerPort: 80, protocol: "tcp" }), ["container.ports[0].protocol"]],
  [
    "a name of 16 characters",
    ports({ containerPort: 80, name: "a".repeat(16) }),
    ["container.ports[0].name"],
  ],
  [
    "a number twice",
    ports({ containerPort: 80 }, { containerPort: 80, protocol: "TCP" }),
    ["container.ports[1].container_port"],
  ],
  [
    "a name twice",
    ports({ containerPort: 80, name: "a" }, { containerPort: 81, name: "a" }),
    ["container.ports[1].name"],
  ],
  ["101", ports(...Array.from({ length: 101 }, (_, i) => ({ containerPort: i + 1 }))), ["container.ports"]],
]);

const onTwo = (hostNetwork: boolean, protocol = "TCP") => ({
  ...ports({ containerPort: 80 }),
  sidecars: [{ name: "side", image: "app:v1", ports: [{ containerPort: 80, protocol }] }],
  podConfig: { hostNetwork },
});

describeSpec("container_service", "ports of two containers", [
  ["the same number in the pod's own network", onTwo(false), []],
  ["the same number in the host's network", onTwo(true), ["sidecars[0].ports[0].container_port"]],
  ["the same number for another protocol", onTwo(true, "UDP"), []],
]);
