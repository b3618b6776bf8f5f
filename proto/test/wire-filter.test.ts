import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectRequest, PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { describeAgentWire } from "./agent-wire.ts";
import { buildRegistry } from "./descriptor.ts";
import { WireFilter } from "./wire-filter.ts";

const registry = await buildRegistry();
const present = describeAgentWire(registry);
const without = (...elements: readonly string[]) =>
  new WireFilter(
    registry,
    present.filter((line) => !elements.some((element) => line.startsWith(`${element} `))),
  );

test("messages of the same version are unchanged", () => {
  const status = PodStatus.fromPartial({ uid: "u", phase: PodPhase.RUNNING, podIp: "192.0.2.1" });
  const bytes = PodStatus.encode(status).finish();
  assert.deepEqual(PodStatus.decode(without().filter("forage.agent.v1.PodStatus", bytes)), status);
});

test("fields, messages of a oneof and enum values that a version lacks are dropped, at any depth", () => {
  const filter = without(
    "field forage.agent.v1.PodStatus 1",
    "value forage.agent.v1.PodPhase 3",
    "field forage.agent.v1.ConnectRequest 8",
  );
  const pass = (request: ConnectRequest): ConnectRequest => {
    const bytes = ConnectRequest.encode(request).finish();
    return ConnectRequest.decode(filter.filter("forage.agent.v1.ConnectRequest", bytes));
  };
  const statuses = (pods: Parameters<typeof PodStatus.fromPartial>[0][]): ConnectRequest =>
    ConnectRequest.fromPartial({ message: { $case: "podStatuses", value: { pods } } });
  assert.deepEqual(
    pass(statuses([{ uid: "u", name: "a", phase: PodPhase.RUNNING }, { phase: PodPhase.SUCCEEDED }])),
    statuses([{ name: "a", phase: PodPhase.RUNNING }, {}]),
  );
  const later = ConnectRequest.fromPartial({ message: { $case: "podMetrics", value: {} } });
  assert.equal(pass(later).message, undefined);
});

test("methods that a version lacks are reported", () => {
  const path = "/forage.agent.v1.AgentService/Serve";
  assert.ok(without().hasMethod(path));
  assert.ok(!without("rpc forage.agent.v1.AgentService.Serve").hasMethod(path));
});
