import assert from "node:assert/strict";
import { test } from "node:test";
import { aServiceEntry, aWorkloadEntry } from "../../test/support/entries.ts";
import { aView, type Contents } from "../../test/support/view.ts";
import { serviceTrouble } from "./service-trouble.ts";

const ports = [{ name: "http", containerPort: 8080, protocol: "" }];
const withPorts = aWorkloadEntry({ spec: { container: { name: "main", image: "app:v1", ports } } });

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
    "a service on a port that no container declares",
    { resources: [withPorts, aServiceEntry({ spec: { ports: [{ port: 80, targetPort: 9090 }] } })] },
    "PortNotFound: no container of container_service/web declares port 9090/TCP, to which port 80 leads (declared: 8080/TCP); add it to container.ports",
  ],
  [
    "a service on a port that is declared for another protocol",
    { resources: [withPorts, aServiceEntry({ spec: { ports: [{ port: 8080, protocol: "UDP" }] } })] },
    "PortNotFound: no container of container_service/web declares port 8080/UDP, to which port 8080 leads (declared: 8080/TCP); add it to container.ports",
  ],
  [
    "a headless service without ports",
    { resources: [withPorts, aServiceEntry({ spec: { ports: [] } })] },
    undefined,
  ],
] satisfies readonly (readonly [string, Contents, string | undefined])[]) {
  test(`${what} ${expected === undefined ? "has no trouble" : `has: ${expected.slice(0, 30)}`}`, async (t) => {
    const { state } = await aView(t, contents);
    const found = serviceTrouble(state, "shop", "web");
    assert.equal(found && `${found.reason}: ${found.message}`, expected);
  });
}
