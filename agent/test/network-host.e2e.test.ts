import { test } from "node:test";
import { enterOwnNetwork, whyNoOwnIpv6, whyNoOwnNetwork } from "../../hack/lib/own-network.ts";
import { HostUnderTest } from "./host-under-test.ts";
import { testPodNetwork } from "./network-contract.ts";

const obstacle = whyNoOwnNetwork();
if (obstacle === undefined) {
  enterOwnNetwork();
  let hosts = 0;
  testPodNetwork("host", (t) => HostUnderTest.setUp(t, hosts++));
  const ipv4Only = whyNoOwnIpv6();
  if (ipv4Only === undefined)
    testPodNetwork("dual-stack host", (t) => HostUnderTest.setUp(t, hosts++, { podCidr6: "fd64::/64" }));
  else test("dual-stack host network", { skip: ipv4Only });
} else {
  test("host network", { skip: obstacle });
}
