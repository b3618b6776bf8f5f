import { test } from "node:test";
import { HostUnderTest } from "./host-under-test.ts";
import { testPodNetwork } from "./network-contract.ts";
import { enterOwnNetwork, whyNoOwnNetwork } from "./own-network.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) {
  enterOwnNetwork();
  let hosts = 0;
  testPodNetwork("host", (t) => HostUnderTest.setUp(t, hosts++));
} else {
  test("host network", { skip: obstacle });
}
