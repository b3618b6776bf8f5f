import assert from "node:assert/strict";
import { test } from "node:test";
import { aNode, aPod, aServiceEntry, aWorkloadEntry } from "../../test/support/entries.ts";
import { aView, type Contents } from "../../test/support/view.ts";
import { serviceFailure } from "./service-failure.ts";

const PORTS = [{ name: "http", containerPort: 8080, protocol: "" }];
const withPorts = aWorkloadEntry({ spec: { container: { name: "main", image: "app:v1", ports: PORTS } } });
const toUndeclared = aServiceEntry({ spec: { ports: [{ port: 80, targetPort: 9090 }] } });
const node = aNode({ name: "n1" });

function publishing(...containerPorts: readonly number[]) {
  const hostPorts = containerPorts.map((containerPort) => ({
    ...{ container: "main", containerPort, protocol: "TCP", hostPort: 20_000 + containerPort },
  }));
  return aPod({ node: "n1", status: { ready: true, hostPorts } });
}

function ports100(first: number) {
  return Array.from({ length: 100 }, (_, index) => ({ name: `p${index}`, port: first + index }));
}

for (const [what, contents, expected] of [
  ["a service whose target declares its port", { resources: [withPorts, aServiceEntry()] }, undefined],
  [
    "a service whose target doesn't exist",
    { resources: [aServiceEntry()] },
    'TargetNotFound: there is no container_service/web in namespace "shop"',
  ],
  [
    "a service whose target is being deleted",
    { resources: [aWorkloadEntry({ deleting: true }), aServiceEntry()] },
    'TargetNotFound: there is no container_service/web in namespace "shop"',
  ],
  [
    "a service on a port that no container declares, while no pod is ready",
    { resources: [withPorts, toUndeclared] },
    undefined,
  ],
  [
    "a service on a port that a ready pod's node publishes though no container declares it",
    { resources: [withPorts, toUndeclared], nodes: [node], pods: [publishing(8080, 9090)] },
    undefined,
  ],
  [
    "a service on a port that no ready pod's node publishes",
    { resources: [withPorts, toUndeclared], nodes: [node], pods: [publishing(8080)] },
    "PortNotFound: port 80 leads to 9090/TCP, which no node publishes for the ready pods of container_service/web yet: an agent of an older version publishes only ports in container.ports, and on the host network the port may be taken",
  ],
  [
    "a service whose target has too many undeclared ports",
    {
      resources: [
        withPorts,
        aServiceEntry({ spec: { ports: ports100(1000) } }),
        aServiceEntry({ name: "other", spec: { ports: ports100(1100) } }),
      ],
    },
    undefined,
  ],
  [
    "a service whose ports come after those of another that has as many as can be",
    {
      resources: [
        withPorts,
        aServiceEntry({ spec: { ports: ports100(1100) } }),
        aServiceEntry({ name: "other", spec: { ports: ports100(1000) } }),
      ],
    },
    "PortNotFound: port 1100 leads to 1100/TCP, which no container of container_service/web declares, and its services lead to more than 100 such ports; add it to container.ports",
  ],
  [
    "a headless service without ports",
    { resources: [withPorts, aServiceEntry({ spec: { ports: [] } })] },
    undefined,
  ],
] satisfies readonly (readonly [string, Contents, string | undefined])[]) {
  test(`reports ${expected === undefined ? "no failure" : `"${expected.slice(0, 30)}"`} for ${what}`, async (t) => {
    const { state } = await aView(t, contents);
    const found = serviceFailure(state, "shop", "web");
    assert.equal(found && `${found.reason}: ${found.message}`, expected);
    // Only another agent version, or another port on the host, ends this failure without an apply.
    assert.equal(found?.mayPass ?? false, expected?.includes("which no node publishes") ?? false);
  });
}
