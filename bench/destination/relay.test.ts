import assert from "node:assert/strict";
import { test } from "node:test";
import { DestinationService } from "@forage/proto/destination";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { systemClock } from "../../agent/src/clock.ts";
import { DestinationRelay } from "../../agent/src/destination/relay.ts";
import { RelayServer } from "../../agent/src/destination/relay-server.ts";
import { Upstream } from "../../agent/src/destination/upstream.ts";
import { callsOf } from "../../coordinator/test/support/calls.ts";
import { HollowAgent } from "../../coordinator/test/support/hollow-agent.ts";
import { Lookup } from "../../coordinator/test/support/lookup.ts";
import { aContainerService, aRequest, aService } from "../../coordinator/test/support/requests.ts";
import { startWorld } from "../../coordinator/test/support/world.ts";

test("a pod's proxy follows a service of a real coordinator through the agent's relay", {
  timeout: 120_000,
}, async (t) => {
  const world = await startWorld(t);
  const agent = await HollowAgent.start(world);
  await world.forage().applyResources(aRequest("a1", [aService("web", "web"), aContainerService("web")]));
  const upstream = new Upstream(async () => agent.client);
  const relay = new DestinationRelay({
    open: upstream.open,
    nodeName: agent.name,
    clock: systemClock,
    random: Math.random,
  });
  const server = await RelayServer.open({
    address: "127.0.0.1",
    port: 0,
    relay,
    clock: systemClock,
    clientAt: (address) => ({ address, namespace: "shop" }),
  });
  const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  t.after(async () => {
    client.close();
    relay.close();
    await server.close();
  });
  const { get } = callsOf(DestinationService, client, new Metadata());
  const lookUp = (): Lookup =>
    new Lookup(get({ scheme: "", path: "web.shop.svc.cluster.local:80", contextToken: "" }));
  const [first, second] = [lookUp(), lookUp()];
  await first.until(() => first.endpoints.size === 2);
  await second.until(() => second.endpoints.size === 2);
  assert.equal(relay.size.lookups, 1);
  await world.operator().delete({ namespace: "shop", resources: [], labels: {}, all: true });
  await first.until(() => first.exists === false);
  const late = lookUp();
  await late.until(() => late.exists === false);
});
