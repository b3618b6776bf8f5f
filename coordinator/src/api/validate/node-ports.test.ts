import assert from "node:assert/strict";
import { test } from "node:test";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { aServiceEntry } from "../../../test/support/entries.ts";
import { HandFedState } from "../../../test/support/hand-fed-state.ts";
import { CoordinatorError } from "../../errors.ts";
import { checkNodePorts } from "./node-ports.ts";

const RANGE = { first: 30_000, last: 30_100 };
const taken = aServiceEntry({
  name: "old",
  spec: { type: "NodePort", ports: [{ port: 80, nodePort: 30_080 }] },
});

test("accepts free ports of the range, and a service's own port", () => {
  assert.deepEqual(refused([{ name: "new", ports: [{ port: 80, nodePort: 30_081 }, { port: 81 }] }]), []);
  assert.deepEqual(refused([{ name: "old", ports: [{ port: 80, nodePort: 30_080 }] }]), []);
  assert.deepEqual(refused([{ name: "new", ports: [{ port: 80, nodePort: 30_080, protocol: "UDP" }] }]), []);
});

test("rejects used ports with their paths and owners", () => {
  assert.deepEqual(
    refused([
      {
        name: "new",
        ports: [
          { port: 1, nodePort: 30_081 },
          { port: 80, nodePort: 30_080 },
        ],
      },
    ]),
    [
      "resources[0].service.ports[1].node_port: 30080/TCP belongs to service shop/old; choose another, or leave it empty for a free one",
    ],
  );
  assert.deepEqual(refused([{ name: "new", ports: [{ port: 80, nodePort: 29_999 }] }]), [
    "resources[0].service.ports[0].node_port: 29999 is not in the coordinator's range of 30000 to 30100",
  ]);
  const both = [
    { name: "a", ports: [{ port: 80, nodePort: 30_090 }] },
    { name: "b", ports: [{ port: 80, nodePort: 30_090 }] },
  ];
  assert.deepEqual(refused(both), [
    "resources[1].service.ports[0].node_port: 30090/TCP belongs to service shop/a; choose another, or leave it empty for a free one",
  ]);
});

function refused(services: readonly { name: string; ports: readonly object[] }[]): string[] {
  const resources = services.map(({ name, ports }) => ({
    name,
    spec: { $case: "service" as const, value: { target: "web", type: "NodePort", ports: [...ports] } },
  }));
  const { state } = new HandFedState({ resources: [taken] });
  try {
    checkNodePorts(ApplyResourcesRequest.fromPartial({ namespace: "shop", resources }), RANGE, state);
    return [];
  } catch (error) {
    assert.ok(error instanceof CoordinatorError);
    return (error.violations ?? []).map(({ field, description }) => `${field}: ${description}`);
  }
}
