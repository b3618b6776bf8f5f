import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ListNodesRequest, ListResourcesRequest } from "@forage/proto/forage/operator/v1/operator";
import { aNode, aServiceEntry, aWorkloadEntry } from "../../../test/support/entries.ts";
import { aView } from "../../../test/support/view.ts";
import type { CallContext } from "../../rpc/caller.ts";
import { type ReadOptions, readHandlers } from "./read-handlers.ts";

const CONTEXT = {} as CallContext;

test("lists the resources that match every part of the request", async (t) => {
  const { handlers } = await start(t);
  const list = async (request: Parameters<typeof ListResourcesRequest.fromPartial>[0]): Promise<string[]> => {
    const { resources } = await handlers.listResources(ListResourcesRequest.fromPartial(request), CONTEXT);
    return resources.map(({ namespace, kind, name }) => `${namespace}/${kind}/${name}`).sort();
  };
  const [db, web, front, other] = [
    "shop/container_service/db",
    "shop/container_service/web",
    "shop/service/web",
    "zoo/service/web",
  ];
  assert.deepEqual(await list({}), [db, web, front, other]);
  assert.deepEqual(await list({ namespace: "shop" }), [db, web, front]);
  assert.deepEqual(await list({ kind: "container_service" }), [db, web]);
  assert.deepEqual(await list({ name: "web" }), [web, front, other]);
  assert.deepEqual(await list({ namespace: "shop", kind: "service", name: "web" }), [front]);
  assert.deepEqual(await list({ labels: { tier: "back" } }), [db, other]);
  assert.deepEqual(await list({ labels: { tier: "back" }, kind: "service" }), [other]);
  assert.deepEqual(await list({ labels: { tier: "back" }, name: "web", kind: "container_service" }), []);
});

test("lists all nodes, or the one with the name", async (t) => {
  const { handlers } = await start(t);
  const list = async (name?: string): Promise<string[]> => {
    const { nodes } = await handlers.listNodes(ListNodesRequest.fromPartial({ name }), CONTEXT);
    return nodes.map((node) => node.name).sort();
  };
  assert.deepEqual(await list(), ["n1", "n2"]);
  assert.deepEqual(await list("n2"), ["n2"]);
  assert.deepEqual(await list("n3"), []);
});

async function start(t: TestContext) {
  const view = await aView(t, {
    resources: [
      aWorkloadEntry(),
      aWorkloadEntry({ name: "db", labels: { tier: "back" } }),
      aServiceEntry(),
      aServiceEntry({ namespace: "zoo", labels: { tier: "back" } }),
    ],
    nodes: [aNode(), aNode({ name: "n2" })],
  });
  const options: Partial<ReadOptions> = {
    ...view,
    autoscale: { statusOf: () => undefined },
    gateways: { statusOf: () => undefined, nodeState: () => undefined },
  };
  return { handlers: readHandlers(options as ReadOptions) };
}
