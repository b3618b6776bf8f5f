import assert from "node:assert/strict";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startBackend } from "./backend.ts";
import { GatewayUnderTest, service, to } from "./gateway-under-test.ts";
import { until } from "./until.ts";

const HOST = "app.example.com";
const LIMIT = { timeout: 120_000 };

for (const [what, file] of [
  ["gateway's stored configuration", "gateway/gateway.sealed"],
  ["stored services", "services/services.bin"],
] as const)
  test(
    `an Envoy that dies while the ${what} is lost is started again from its own files`,
    LIMIT,
    async (t) => {
      const { gateway } = await aServingGateway(t);
      await gateway.stopAgent();
      await rm(join(gateway.dir, file));
      await gateway.startAgent();

      await gateway.proxy.kill();

      await answers(gateway);
      gateway.serve(service("a", [(await startBackend(t, "b")).port]));
      await gateway.hosts({ hostname: HOST, rules: [to("a")] });
      await until("the coordinator's services are applied", async () => {
        const { headers } = await gateway.ask(HOST, "/");
        return headers["x-from"] === "b";
      });
    },
  );

test("an Envoy that dies after its files were lost is started with new ones", LIMIT, async (t) => {
  const { gateway } = await aServingGateway(t);
  await gateway.forgetRunDir();
  await gateway.proxy.kill();
  await answers(gateway);
});

test("an Envoy whose files were lost while no agent ran is replaced", LIMIT, async (t) => {
  const { gateway } = await aServingGateway(t);
  await gateway.stopAgent();
  await gateway.forgetRunDir();
  await gateway.startAgent();
  await until("Envoy is replaced", () => gateway.events.some((it) => it.startsWith("gateway-proxy-lost")));
  await answers(gateway);
  await gateway.hosts(
    { hostname: HOST, rules: [to("a")] },
    { hostname: "new.example.com", rules: [to("a")] },
  );
  assert.equal((await gateway.ask("new.example.com", "/")).status, 200);
});

test(
  "an Envoy of which no file is left serves until the coordinator says what the node is",
  LIMIT,
  async (t) => {
    const { gateway } = await aServingGateway(t);
    await gateway.stopAgent();
    await gateway.forgetRunDir();
    await rm(join(gateway.dir, "gateway", "gateway.sealed"));
    await gateway.startAgent();
    assert.equal((await gateway.ask(HOST, "/")).status, 200);
    gateway.take({ full: true, gateway: "" });
    await until("Envoy is gone", async () => !(await gateway.proxy.isRunning()));
    await until(
      "its directory is gone",
      async () => (await stat(gateway.places.dir).catch(() => undefined)) === undefined,
    );
  },
);

/** A gateway whose host leads to service a. */
async function aServingGateway(t: TestContext) {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  await gateway.hosts({ hostname: HOST, rules: [to("a")] });
  assert.equal((await gateway.ask(HOST, "/")).status, 200);
  return { gateway };
}

async function answers(gateway: GatewayUnderTest): Promise<void> {
  await until("it answers again", async () => {
    const answer = await gateway.ask(HOST, "/").catch(() => undefined);
    return answer?.status === 200;
  });
}
