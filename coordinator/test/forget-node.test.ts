import assert from "node:assert/strict";
import { test } from "node:test";
import { ExecStart, PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { type ServiceError, status } from "@grpc/grpc-js";
import { Fleet, QUICK_LOSSES } from "./support/fleet.ts";
import type { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService } from "./support/requests.ts";
import { until } from "./support/until.ts";

const LIMIT = { timeout: 120_000 };

test("removes a lost node with its pods, and refuses it when it returns", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1", "n2"], QUICK_LOSSES);
  await fleet.apply(aContainerService("web", { scaling: { replicas: 4 } }));
  await assert.rejects(fleet.operator.forgetNode({ name: "n1", force: false }), {
    code: status.FAILED_PRECONDITION,
    details: /node n1 is connected: drain it and stop its agent first/,
  });
  await assert.rejects(fleet.operator.forgetNode({ name: "n9", force: false }), { code: status.NOT_FOUND });
  const there = fleet.agent("n1").assignments.size;
  assert.ok(there > 0);
  fleet.agent("n1").close();
  await until("it is unreachable", async () => (await fleet.node("n1")).unreachable);
  const { pods, claims } = await fleet.operator.forgetNode({ name: "n1", force: false });
  assert.deepEqual([pods >= there, claims], [true, []]);
  assert.deepEqual(
    (await fleet.nodes()).map(({ name }) => name),
    ["n2"],
  );
  await until("all replicas are on the other", async () => {
    const all = await fleet.allPods();
    return all.length === 4 && all.every((pod) => pod.node === "n2" && pod.status?.ready);
  });
  const back = fleet.agent("n1").again();
  await until("its stream is ended", () => back.ended !== undefined);
  const error = back.ended as ServiceError;
  assert.equal(error.code, status.UNAUTHENTICATED);
  assert.match(
    error.details,
    /its node was removed or has joined again since; to join again put what `forage token create/,
  );
});

test("refuses to remove a node with claims, and with force starts them empty elsewhere", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1"], QUICK_LOSSES);
  const object = { namespace: "shop", name: "data", spec: { $case: "claim", value: {} } };
  await fleet.operator.putObject(PutObjectRequest.fromPartial({ namespace: "shop", object } as object));
  const volumes = [{ name: "v", source: { $case: "pvc", value: { claimName: "data" } } }];
  await fleet.apply(aContainerService("db", { scaling: { replicas: 1 }, volumes }));
  await fleet.join("n2");
  fleet.agent("n1").close();
  await until("it is unreachable", async () => (await fleet.node("n1")).unreachable);
  await assert.rejects(fleet.operator.forgetNode({ name: "n1", force: false }), {
    code: status.FAILED_PRECONDITION,
    details: /the data of claims on node n1 would be lost: shop\/data; remove it with force/,
  });
  assert.equal((await fleet.nodes()).length, 2, "nothing was done");
  const { claims } = await fleet.operator.forgetNode({ name: "n1", force: true });
  assert.deepEqual(claims, ["shop/data"]);
  await until("it runs elsewhere", async () =>
    (await fleet.pods("db")).some((pod) => pod.node === "n2" && pod.status?.ready),
  );
});

test("removes a connected node only with force, and ends its session at once", LIMIT, async (t) => {
  const fleet = await Fleet.start(t, ["n1", "n2"]);
  await fleet.apply(aContainerService("web", { scaling: { replicas: 2 } }));
  const agent = fleet.agent("n1");
  const exec = await openExec(fleet, agent);
  const startMs = performance.now();
  const after = (): string => `${Math.round(performance.now() - startMs)} ms`;
  const [, session, command] = await Promise.all([
    fleet.operator.forgetNode({ name: "n1", force: true }),
    until("its stream is ended", () => agent.ended !== undefined).then(after),
    until("the command on it is ended", () => exec.error !== undefined).then(after),
  ]);
  t.diagnostic(`its session ended ${session} after the call, a command on it ${command}`);
  assert.equal(exec.error?.code, status.UNAVAILABLE);
  const { code, details } = agent.ended as ServiceError;
  assert.match(`${code} ${details}`, /7 node n1 was removed: join again with a new token/);
  await until("the other has all", async () => {
    const all = await fleet.allPods();
    return all.length === 2 && all.every((pod) => pod.node === "n2" && pod.status?.ready);
  });
});

/**
 * Opens a command in a pod of the node that never ends by itself. Resolves when its output was
 * received.
 */
async function openExec(
  { operator }: Fleet,
  agent: HollowAgent,
): Promise<{ readonly error: ServiceError | undefined }> {
  const result: { error: ServiceError | undefined } = { error: undefined };
  const [assigned] = agent.assignments.values();
  const options = { command: ["sleep", "inf"] };
  const value = ExecStart.fromPartial({ namespace: "shop", pod: assigned?.name ?? "", options });
  let output = 0;
  const call = operator.exec();
  call.on("data", () => output++);
  call.on("error", (error: ServiceError) => {
    result.error = error;
  });
  call.write({ frame: { $case: "start", value } });
  await until("the agent is asked", () => agent.sessions.length > 0);
  const served = agent.client.serve();
  served.on("error", () => {});
  served.write({ frame: { $case: "sessionId", value: agent.sessions.shift()?.sessionId ?? "" } });
  served.write({ frame: { $case: "stdout", value: Buffer.from("on") } });
  await until("its output comes through", () => output > 0);
  return result;
}
