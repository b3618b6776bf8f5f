import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { StopWorkspacePolicy, WorkspacePhase } from "@forage/proto/core";
import { until } from "./support/until.ts";
import { runOverSsh, serveSessions } from "./support/workspaces/visits.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";
import type { World } from "./support/world.ts";

test("reaches a running workspace by its URL and by SSH, which counts as activity", {
  timeout: 60_000,
}, async (t) => {
  const { world, agent, calls, reaches, port } = await setUp(t);
  const { ownerToken } = await calls.startWorkspace(aStart());
  await reaches("instance-1", WorkspacePhase.RUNNING);
  serveSessions(agent, port);
  const { ingress, ssh } = world.coordinator.access ?? {};
  const token = { "x-gitpod-owner-token": ownerToken };
  assert.deepEqual(await get(ingress?.port, token), { status: 200, body: "hello" });
  assert.equal((await get(ingress?.port, {})).status, 401);
  assert.equal(await runOverSsh(ssh?.port, ownerToken, "echo from the workspace"), "from the workspace\n");
  await until(
    "activity",
    async () => (await calls.describeWorkspace({ id: "instance-1" })).lastActivity !== "",
  );
  await calls.stopWorkspace({ id: "instance-1", policy: StopWorkspacePolicy.NORMALLY });
  await reaches("instance-1", WorkspacePhase.STOPPED);
  assert.equal((await get(ingress?.port, token)).status, 404);
  await assert.rejects(runOverSsh(ssh?.port, ownerToken, "true"), /authentication methods failed/);
});

for (const kind of ["command", "forwarded port"] as const)
  test(`counts a ${kind} through the API as activity while it is open`, { timeout: 180_000 }, async (t) => {
    const { world, agent, calls, reaches, port } = await setUp(t);
    await calls.startWorkspace(aStart());
    await reaches("instance-1", WorkspacePhase.RUNNING);
    serveSessions(agent, port);
    const lastActivity = async () => (await calls.describeWorkspace({ id: "instance-1" })).lastActivity;
    assert.equal(await lastActivity(), "");
    const call = kind === "command" ? openCommand(world) : openPort(world);
    call.on("error", () => {});
    await until("activity", async () => (await lastActivity()) !== "");
    const first = await lastActivity();
    world.clock.skip(31_000);
    await until("activity while it is open", async () => (await lastActivity()) !== first);
    call.cancel();
  });

const POD = { namespace: "workspaces", pod: "ws-instance-1" };

/** Begins a command that runs until its input ends. */
function openCommand(world: World): { cancel(): void; on(event: "error", run: () => void): unknown } {
  const call = world.operator().exec();
  const options = { command: ["cat"], stdin: true, tty: false, size: undefined };
  call.write({ frame: { $case: "start", value: { ...POD, container: "", options } } });
  return call;
}

function openPort(world: World): ReturnType<typeof openCommand> {
  const call = world.operator().portForward();
  call.write({ frame: { $case: "start", value: { ...POD, port: 8_080 } } });
  return call;
}

async function setUp(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "forage-access-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const app = createServer((_request, response) => response.end("hello"));
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  t.after(() => app.close());
  const listen = "127.0.0.1:0";
  const settings = { ingress: { listen }, ssh: { listen, hostKeyFile: join(dir, "keys", "host.key") } };
  const parts = await startWorkspaceWorld(t, { settings });
  return { ...parts, port: (app.address() as AddressInfo).port };
}

async function get(port: number | undefined, headers: Record<string, string>) {
  const host = "prefix-1.ws.example.test";
  const sent = request({ host: "127.0.0.1", port, headers: { ...headers, host }, agent: false }).end();
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    sent.once("response", resolve).once("error", reject),
  );
  let body = "";
  for await (const chunk of response) body += String(chunk);
  return { status: response.statusCode, body: response.statusCode === 200 ? body : "" };
}
