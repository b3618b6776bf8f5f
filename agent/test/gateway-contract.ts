import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GatewayStatus, GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";
import type { Gateway } from "../src/gateway/gateway.ts";

/** A host with an agent that has received all services. */
export interface GatewayHost {
  /** Returns the gateway of the current agent. */
  readonly gateway: () => Gateway;
  /** Ends the agent and starts the next one, whose coordinator does not respond. */
  readonly restartAgent: () => Promise<void>;
  /** Waits for a short time. */
  readonly pause: () => Promise<void>;
}

/** The limit of the wait for a status. A host under load takes several seconds to start a proxy. */
const REPORTED_WITHIN_MS = 90_000;

const NO_GATEWAY = "this node is not a gateway";

/** Tests the contract of a Gateway that the coordinator relies on. */
export function testGateway(name: string, make: (t: TestContext) => Promise<GatewayHost>): void {
  const check = (what: string, run: (host: GatewayHost) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 120_000 }, async (t) => run(await make(t)));
  const apply = (host: GatewayHost, update: Parameters<typeof GatewayUpdate.fromPartial>[0]): void =>
    host.gateway().apply(GatewayUpdate.fromPartial(update));
  const reported = async (
    { gateway, pause }: GatewayHost,
    expected: Partial<GatewayStatus>,
  ): Promise<void> => {
    const matches = (): boolean => {
      const { ready, message, version } = gateway().status() ?? GatewayStatus.fromPartial({});
      const found = { ready, message, version };
      return Object.entries(expected).every(([key, value]) => found[key as keyof typeof found] === value);
    };
    const deadlineMs = performance.now() + REPORTED_WITHIN_MS;
    while (!matches()) {
      if (performance.now() > deadlineMs)
        assert.partialDeepStrictEqual(gateway().status(), expected, "the status has not become this");
      await pause();
    }
  };

  check(
    "reports each version while the host is a gateway, and once after it is no longer one",
    async (host) => {
      const statuses: GatewayStatus[] = [];
      host.gateway().subscribe((status) => statuses.push(status));
      apply(host, { full: true, gateway: "", version: 1n });
      for (let at = 0; at < 3; at++) await host.pause();
      assert.equal(host.gateway().status(), undefined);
      apply(host, { full: true, gateway: "default", version: 2n });
      await reported(host, { ready: true, message: "", version: 2n });
      assert.notEqual(host.gateway().status()?.proxyVersion, "");
      apply(host, { gateway: "default", version: 3n });
      await reported(host, { ready: true, version: 3n });
      apply(host, { full: true, gateway: "", version: 4n });
      await reported(host, { ready: false, message: NO_GATEWAY, version: 3n });
      assert.deepEqual(
        statuses.filter(({ ready }) => ready).map(({ version }) => version),
        [2n, 3n],
      );
      assert.deepEqual(statuses.at(-1), host.gateway().status());
    },
  );

  check("continues as a gateway after a restart of the agent without its coordinator", async (host) => {
    apply(host, { full: true, gateway: "default", version: 7n });
    await reported(host, { ready: true, version: 7n });
    await host.restartAgent();
    await reported(host, { ready: true, message: "", version: 7n });
  });
}
