import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest, watchToEnd } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

test("a coordinator whose data went back decides nothing until they are restored on purpose", {
  timeout: 60_000,
}, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world, { name: "n1" });
  const other = await HollowAgent.start(world, { name: "n2" });
  const { rolloutId } = await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
  await watchToEnd(world, rolloutId);
  const pods = async (): Promise<string[]> => {
    const { pods: all } = await world.operator().listPods(everything);
    return all.map(({ uid, stopping }) => `${uid} ${stopping}`).sort();
  };
  const before = await pods();
  agent.close();
  const assignmentRevision = (1n << 40n) + 1_000_000n;
  const secret = world.authority.deriveSecret("store history");
  const signature = createHmac("sha256", secret).update(`n1\nlineage-1/lost\n${assignmentRevision}`);
  const seen = { lineage: `lineage-1/lost/${signature.digest("base64url")}`, assignmentRevision };
  const back = agent.again({ name: "n1", seen, pods: [] });
  await until("the node says why", async () => {
    const { nodes } = await world.operator().listNodes({});
    return (
      nodes.find(({ name }) => name === "n1")?.message.startsWith("node n1 has seen later data") ?? false
    );
  });
  const check = async (): Promise<void> => {
    const ready = await fetch(`http://127.0.0.1:${world.coordinator.http.port}/readyz`);
    assert.equal(ready.status, 503);
    assert.match(await ready.text(), /an old copy of the data directory was put back/);
    await assert.rejects(
      world.forage().applyResources(aRequest("a2", [aContainerService("api")])),
      /old copy of the data directory/,
    );
    assert.deepEqual(await pods(), before);
  };
  await check();
  assert.equal(back.assignments.size, 0, "it was sent nothing");
  await world.restart();
  const late = other.again({ name: "n2", pods: [] });
  await until("it is connected", async () =>
    (await world.operator().listNodes({})).nodes.some((it) => it.message !== ""),
  );
  await check();
  assert.equal(late.assignments.size, 0);
});

const everything = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };
