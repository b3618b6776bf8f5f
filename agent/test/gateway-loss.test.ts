import assert from "node:assert/strict";
import { rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ensureEnvoy } from "../../hack/lib/envoy.ts";
import { ChosenLauncher } from "../src/gateway/chosen-launcher.ts";
import { ProgramLauncher } from "../src/gateway/launch-program.ts";
import { runCommand } from "../src/network/run-command.ts";
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

test("replaces an Envoy whose files were lost while no agent ran", LIMIT, async (t) => {
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

test("an Envoy whose files are lost serves until the coordinator sends the node's role", LIMIT, async (t) => {
  const { gateway } = await aServingGateway(t);
  await gateway.stopAgent();
  await gateway.forgetRunDir();
  await rm(join(gateway.dir, "gateway", "gateway.sealed"));
  await gateway.startAgent();
  assert.equal((await gateway.ask(HOST, "/")).status, 200);
  gateway.send({ full: true, gateway: "" });
  await until("Envoy is gone", async () => !(await gateway.proxy.isRunning()));
  await until(
    "its directory is gone",
    async () => (await stat(gateway.places.dir).catch(() => undefined)) === undefined,
  );
});

test("reports a missing Envoy, and starts it once it is installed", LIMIT, async (t) => {
  const envoy = await ensureEnvoy();
  let program = "";
  const gateway = await GatewayUnderTest.start(t, {
    launcher: (_, dir = "") => {
      program = join(dir, "envoy");
      return new ChosenLauncher({ programs: [program], ofProgram, ofImage: undefined });
    },
  });
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  gateway.send({ full: true, hosts: [{ hostname: HOST, rules: [to("a")] }] });
  await until("the missing program is reported", () =>
    /install it as \/usr\/bin\/envoy/.test(gateway.gateway.status()?.message ?? ""),
  );
  assert.equal(gateway.gateway.status()?.ready, false);

  await symlink(envoy, program);
  await answers(gateway);

  // An upgrade briefly removes the program.
  await rm(program);
  await gateway.stopAgent();
  await gateway.startAgent();
  assert.equal((await gateway.ask(HOST, "/")).status, 200);
  await gateway.proxy.kill();
  await until("the missing program is reported again", () => gateway.gateway.status()?.ready === false);
  await symlink(envoy, program);
  await answers(gateway);
});

test("retires a gateway again whose proxy could not be removed", LIMIT, async (t) => {
  const envoy = await ensureEnvoy();
  let attempts = 0;
  const gateway = await GatewayUnderTest.start(t, {
    launcher: () => {
      const launcher = ofProgram(envoy);
      const remove = async (): Promise<void> => {
        attempts++;
        if (attempts <= 2) throw new Error("the runtime does not answer");
      };
      return { name: launcher.name, start: launcher.start.bind(launcher), remove };
    },
  });
  gateway.serve();
  await gateway.hosts();
  gateway.send({ full: true, gateway: "" });
  await until("the failure is reported", () =>
    /the runtime does not answer/.test(gateway.gateway.status()?.message ?? ""),
  );
  await until("it is retired", () => gateway.gateway.status()?.message === "this node is not a gateway");
  assert.equal(attempts, 3);
  await until("its directory is gone", async () => {
    return (await stat(gateway.places.dir).catch(() => undefined)) === undefined;
  });
});

function ofProgram(program: string): ProgramLauncher {
  return new ProgramLauncher({ program, instance: "test", systemd: false, run: runCommand });
}

/** Starts a gateway whose host uses service a. */
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
