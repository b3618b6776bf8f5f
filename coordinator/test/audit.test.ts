import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditFields } from "@forage/common/audit-chain";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import {
  ExecStart,
  OperatorServiceService,
  PutObjectRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { Client, Metadata } from "@grpc/grpc-js";
import type { AuditLog } from "../src/audit/audit-log.ts";
import { FORWARDED_PEER_KEY } from "../src/rpc/forwarded-caller.ts";
import { callsOf } from "./support/calls.ts";
import { HollowAgent, join } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

test("records calls that change or reveal something with their caller, objects and result", async (t) => {
  const { world, entries } = await anAuditedWorld(t);
  const editor = await world.token("editor", ["shop"]);
  await world.forage(editor).applyResources(aRequest("a1", [aContainerService("web")]));
  const secret = { namespace: "shop", kind: "secret", name: "db" };
  const spec = { $case: "secret", value: { data: { password: Buffer.from("hunter2") } } } as const;
  await world
    .operator(editor)
    .putObject(PutObjectRequest.fromPartial({ namespace: "shop", object: { ...secret, spec } }));
  await world.operator(editor).revealObject(secret);
  await world.operator(editor).listPods({ namespace: "shop", labels: {}, workload: "", node: "", name: "" });
  const calls = entries().filter(({ event }) => event === "call");
  assert.deepEqual(
    calls.map(({ method, result, target }) => [method?.split("/")[2], result, target]),
    [
      ["ApplyResources", "OK", { namespace: "shop", applyId: "a1", resources: "web" }],
      ["PutObject", "OK", { namespace: "shop", name: "db", kind: "secret" }],
      ["RevealObject", "OK", secret],
    ].map(([method, result, target]) => [method, result, target]),
  );
  const [apply] = calls;
  assert.match(apply?.caller ?? "", /^token:[a-z0-9]+$/);
  assert.match(apply?.peer ?? "", /^127\.0\.0\.1:\d+$/);
  assert.doesNotMatch(JSON.stringify(entries()), /hunter2/);
});

test("records refused calls without credentials, with tokens of another namespace, and of joins", async (t) => {
  const { world, entries } = await anAuditedWorld(t);
  const editor = await world.token("editor", ["other"]);
  await assert.rejects(world.forage(editor).applyResources(aRequest("a1", [aContainerService("web")])));
  await assert.rejects(world.operator("").listNodes({}));
  const made = await world
    .operator()
    .createJoinToken({ ttlSeconds: 0, nodeName: "n1", reusable: false, labels: {}, taints: [] });
  await join(world, made.token, "n1");
  await assert.rejects(join(world, made.token, "n1"));
  await until("all are recorded", () => entries().filter(({ event }) => event === "refused").length === 3);
  const refused = entries().filter(({ event }) => event === "refused");
  assert.deepEqual(
    refused.map(({ method, result, caller }) => [method?.split("/")[2], result, caller?.slice(0, 6) ?? ""]),
    [
      ["ApplyResources", "PERMISSION_DENIED", "token:"],
      ["ListNodes", "UNAUTHENTICATED", ""],
      ["Join", "PERMISSION_DENIED", ""],
    ],
  );
  const joined = entries().filter(({ event, method }) => event === "call" && method?.endsWith("/Join"));
  assert.deepEqual(
    joined.map(({ target }) => target?.nodeName),
    ["n1"],
  );
});

test("records a removed node by its name when it tries to connect", async (t) => {
  const { world, entries } = await anAuditedWorld(t);
  const agent = await HollowAgent.start(world, { name: "n1" });
  agent.close();
  await until("it is gone", async () => {
    await world.operator().forgetNode({ name: "n1", force: true });
    return true;
  });
  const again = agent.again({ name: "n1", pods: [] });
  await until("it is refused", () => again.ended !== undefined);
  const refused = entries().find(({ event, method }) => event === "refused" && method?.endsWith("/Connect"));
  assert.equal(refused?.caller, "node n1 (certificate not accepted)");
});

test("records a node that reports about another node's pod with both names", async (t) => {
  const { world, entries } = await anAuditedWorld(t);
  const victim = await HollowAgent.start(world, { name: "a" });
  await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await until("the pods are there", () => victim.assignments.size === 2);
  const thief = await HollowAgent.start(world, { name: "thief" });
  const [uid = ""] = victim.assignments.keys();
  thief.report(PodStatus.fromPartial({ uid, phase: PodPhase.REMOVED }));
  thief.report(PodStatus.fromPartial({ uid: "unknown", phase: PodPhase.REMOVED }));
  await until("the report is refused", () => entries().some(({ event }) => event === "refused"));
  const refused = entries().filter(({ event }) => event === "refused");
  assert.deepEqual(
    refused.map(({ method, caller, result }) => [method?.split("/")[2], caller, result]),
    [["Connect", "node thief", "PERMISSION_DENIED"]],
  );
  assert.match(refused[0]?.message ?? "", /^pod shop\/web-.* is bound to node a: the report is ignored$/);
  assert.equal(thief.ended, undefined);
});

test("records streams at their start and end, with the pod in the request", async (t) => {
  const { world, entries } = await anAuditedWorld(t);
  const options = { command: ["env"] };
  const value = ExecStart.fromPartial({ namespace: "shop", pod: "web-1", options });
  const stream = world.operator().exec();
  stream.write({ frame: { $case: "start", value } });
  await assert.rejects(async () => {
    for await (const _ of stream) {
    }
  });
  await until("its end is recorded", () => entries().some(({ event }) => event === "call"));
  assert.deepEqual(
    entries()
      .filter(({ method }) => method?.endsWith("/Exec"))
      .map(({ event, target, result }) => [event, target?.pod, result]),
    [
      ["stream-opened", "web-1", undefined],
      ["call", "web-1", "NOT_FOUND"],
    ],
  );
});

test("records calls that a follower passes on with the address of their client", async (t) => {
  const { world, entries } = await anAuditedWorld(t);
  const { chainPem, keyPem } = await world.authority.issueCoordinator("c2");
  const material = { caPem: world.authority.certPem, certPem: chainPem, keyPem };
  const client = new Client(world.address, channelCredentials(material));
  t.after(() => client.close());
  const passOn = (metadata: Metadata, peer: string) => {
    metadata.set(FORWARDED_PEER_KEY, peer);
    return callsOf(OperatorServiceService, client, metadata);
  };
  const token = bearerMetadata(await world.token("admin"));
  const tokenRequest = { ttlSeconds: 0, nodeName: "n1", reusable: false, labels: {}, taints: [] };
  await passOn(token, "192.0.2.7:4000").createJoinToken(tokenRequest);
  // A call without credentials is refused before its request is read.
  await assert.rejects(passOn(new Metadata(), "192.0.2.8:4000").listNodes({}));
  const recorded = () =>
    entries().filter(({ method }) => /\/(CreateJoinToken|ListNodes)$/.test(method ?? ""));
  await until("both are recorded", () => recorded().length === 2);
  assert.deepEqual(
    recorded().map(({ caller = "", peer }) => [caller.slice(0, 6), peer]),
    [
      ["token:", "192.0.2.7:4000"],
      ["", "192.0.2.8:4000"],
    ],
  );
});

/** Starts a world whose audit log is kept in memory. */
async function anAuditedWorld(t: Parameters<typeof startWorld>[0]) {
  const kept: AuditFields[] = [];
  const audit: AuditLog = {
    append: (fields) => void kept.push(fields),
    read: async () => ({ lines: [], newest: 0 }),
    close: async () => {},
  };
  const world = await startWorld(t, {}, {}, { audit });
  return { world, entries: () => kept };
}
