import { setTimeout as sleep } from "node:timers/promises";
import { testGateway } from "./gateway-contract.ts";
import { GatewayUnderTest } from "./gateway-under-test.ts";

const PAUSE_MS = 20;

testGateway("Envoy", async (t) => {
  const host = await GatewayUnderTest.start(t);
  host.serve();
  return {
    gateway: () => host.gateway,
    restartAgent: async () => {
      await host.stopAgent();
      await host.startAgent();
    },
    pause: () => sleep(PAUSE_MS),
  };
});
