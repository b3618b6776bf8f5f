import assert from "node:assert/strict";
import { test } from "node:test";
import { publishedBy } from "../../test/fake-host-rules.ts";
import { CONTRACT_HOST_PORTS, testPodNetwork } from "../../test/network-contract.ts";
import { FakeNetwork, FakeNetworkHost } from "./fake.ts";
import { NetworkError } from "./network.ts";

testPodNetwork("fake", async () => {
  const host = new FakeNetworkHost();
  return {
    open: () => new FakeNetwork(host, CONTRACT_HOST_PORTS),
    reboot: async () => host.reboot(),
    destroy: async ({ podUid }) => void host.sandboxes.delete(podUid),
    usedSandboxes: async () => host.sandboxes.size,
    published: async () => publishedBy(host),
    occupy: async (protocol, port) => void host.occupied.add(`${protocol} ${port}`),
  };
});

test("fake calls fail as scripted, once each", async () => {
  const network = new FakeNetwork(new FakeNetworkHost());
  await network.start([], AbortSignal.timeout(1_000));
  network.failNext("attach", new NetworkError("NO_ADDRESS_LEFT", "full", { retryable: true }));
  await assert.rejects(network.attach("a", AbortSignal.timeout(1_000)), /full/);
  assert.equal((await network.attach("a", AbortSignal.timeout(1_000))).podUid, "a");
});
