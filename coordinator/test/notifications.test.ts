import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { HollowAgent } from "./support/hollow-agent.ts";
import { aContainerService, aRequest } from "./support/requests.ts";
import { until } from "./support/until.ts";
import { startWorld } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const KEY = "a key of some length";

test(
  "sends a receiver signed messages of the selected events, and repeats none after a restart",
  LIMIT,
  async (t) => {
    const { url, received } = await aReceiver(t);
    const dir = mkdtempSync(join(tmpdir(), "forage-notifications-"));
    t.after(() => rmSync(dir, { recursive: true }));
    const secretFile = join(dir, "key");
    writeFileSync(secretFile, `${KEY}\n`);
    const filter = {
      types: ["Normal" as const],
      reasons: ["RolloutSucceeded"],
      kinds: [],
      namespaces: ["shop"],
    };
    const notifications = [{ name: "ops", url, secretFile, ...filter }];
    const world = await startWorld(t, {}, { notifications });
    const agent = await HollowAgent.start(world);
    await world.forage().applyResources(aRequest("a1", [aContainerService("web")]));
    await until("the first rollout is reported", () => received.length === 1);
    const [first] = received;
    const [, seconds, mac] =
      /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(first?.headers["forage-signature"])) ?? [];
    assert.equal(mac, createHmac("sha256", KEY).update(`${seconds}.${first?.body}`).digest("hex"));
    const { cluster, events } = JSON.parse(first?.body ?? "{}");
    assert.equal(cluster, "forage");
    assert.deepEqual(
      events.map((event: { reason: string; name: string }) => [event.reason, event.name]),
      [["RolloutSucceeded", "web"]],
    );

    const { notifications: listed } = await world.operator().listNotifications({});
    const { name, origin, delivered, problem } = listed[0] ?? {};
    assert.deepEqual([name, origin, delivered, problem], ["ops", new URL(url).origin, 1n, ""]);
    const tested = await world.operator().testNotification({ name: "ops" });
    assert.deepEqual([tested.delivered, received.pop()?.headers["forage-delivery"]], [true, tested.delivery]);
    await assert.rejects(world.operator().testNotification({ name: "dev" }), { code: status.NOT_FOUND });
    const viewer = world.operator(await world.token("viewer"));
    await assert.rejects(viewer.listNotifications({}), { code: status.PERMISSION_DENIED });

    await world.restart();
    agent.again();
    await world.forage().applyResources(aRequest("a2", [aContainerService("api")]));
    await until("the second rollout is reported", () => received.length >= 2);
    const metrics = `http://${world.coordinator.http.host}:${world.coordinator.http.port}/metrics`;
    await until("it counts", async () =>
      /forage_notifications_total\{notification="ops",result="delivered"\} 1\n/.test(
        await (await fetch(metrics)).text(),
      ),
    );
    const names = received.flatMap(({ body }) =>
      (JSON.parse(body) as { events: { name: string }[] }).events.map(({ name }) => name),
    );
    assert.deepEqual(names, ["web", "api"]);
  },
);

async function aReceiver(t: TestContext) {
  const received: { readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      received.push({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
}
