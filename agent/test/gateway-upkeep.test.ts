import assert from "node:assert/strict";
import { readdir, readFile, stat, truncate } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startBackend } from "./backend.ts";
import { Load } from "./gateway-load.ts";
import { GatewayUnderTest, type Host, service, to } from "./gateway-under-test.ts";
import { until } from "./until.ts";
import { EchoSocket, echoUpgrades } from "./web-socket.ts";

const HOST = "app.example.com";

test("100 changes of routes under load fail no request and close no WebSocket", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const backends = [await startBackend(t, "a"), await startBackend(t, "b")];
  for (const { server } of backends) echoUpgrades(server);
  const services = backends.map(({ port }, index) => service(`s${index}`, [port]));
  gateway.serve(...services);
  await gateway.hosts({ hostname: HOST, rules: [to("s0")] });
  const sockets: EchoSocket[] = [];
  for (let i = 0; i < 10; i++) sockets.push(await EchoSocket.open(gateway.ports.http, HOST));
  const load = new Load({
    ...{ port: gateway.ports.http, headers: { host: HOST }, path: "/x" },
    ...{ keeping: 8, reconnecting: 4 },
  });
  for (let change = 0; change < 100; change++) {
    // The route's own backend changes, and so do other hosts and services.
    const own = `s${change % 2}`;
    const other: Host = { hostname: `h${change % 7}.example.com`, rules: [to(`other-${change}`)] };
    await gateway.hosts(
      {
        hostname: HOST,
        rules: [
          to("s0", { match: { path: { value: `/none-${change}` } } }),
          to(own, { route: `shop/r${change}` }),
        ],
      },
      other,
    );
    const answered = load.answered;
    await until("requests are answered", () => load.answered > answered || load.failures.length > 0);
  }
  for (const socket of sockets) await socket.echo("still here");
  await load.stop();
  assert.ok(load.answered >= 100);
  for (const socket of sockets) socket.close();
});

test("adding and removing hosts with certificates keeps the connections of others", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  echoUpgrades(a.server);
  gateway.serve(service("a", [a.port]));
  const kept = { hostname: HOST, rules: [to("a")] };
  await gateway.hosts(kept);
  const socket = await EchoSocket.open(gateway.ports.http, HOST);
  for (let i = 0; i < 5; i++) {
    const backend = { namespace: "shop", service: "a", port: 80, weight: 1 };
    await gateway.hosts(kept, { hostname: `p${i}.example.com`, passthrough: [backend] });
    await socket.echo("still here");
  }
  await gateway.hosts(kept);
  await socket.echo("still here");
  socket.close();
});

test("changing endpoints under load fails no request, and changes only their file", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const [a, b] = [await startBackend(t, "a"), await startBackend(t, "b")];
  gateway.serve(service("s", [a.port]));
  await gateway.hosts({ hostname: HOST, rules: [to("s")] });
  const before = await filesOf(gateway);
  const load = new Load({
    ...{ port: gateway.ports.http, headers: { host: HOST }, path: "/" },
    ...{ keeping: 4, reconnecting: 2 },
  });
  for (let i = 0; i < 9; i++) {
    const [from, toward] = i % 2 === 0 ? [a, b] : [b, a];
    gateway.serve(service("s", [from.port, toward.port]));
    await until("the new one is asked", () => toward.asked.length > 0);
    gateway.serve(service("s", [toward.port]));
    // Requests in progress end at the same pod, within its grace period.
    await until("the old one is asked no more", async () => {
      const { length } = from.asked;
      const { answered } = load;
      await until("some more are answered", () => load.answered > answered + 20 || load.failures.length > 0);
      return from.asked.length === length;
    });
    from.asked.length = 0;
  }
  await load.stop();
  const after = await filesOf(gateway);
  const changed = [...after].filter(([name, text]) => before.get(name) !== text).map(([name]) => name);
  assert.deepEqual(
    changed.map((name) => name.split("/")[0]),
    ["endpoints"],
  );
});

test("a request in progress ends even if its route and service are removed", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const { answer, asking } = await aRequestUnderWay(t, gateway);
  gateway.serve();
  await gateway.hosts();
  answer();
  assert.equal((await asking).body, "done");
  assert.equal((await gateway.ask(HOST, "/")).status, 404);
});

test("the proxy continues without the agent, and after a kill it returns with the same configuration", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  echoUpgrades(a.server);
  gateway.serve(service("a", [a.port]));
  await gateway.hosts({ hostname: HOST, rules: [to("a")] });
  const socket = await EchoSocket.open(gateway.ports.http, HOST);
  const load = new Load({
    ...{ port: gateway.ports.http, headers: { host: HOST }, path: "/" },
    ...{ keeping: 2, reconnecting: 2 },
  });
  await gateway.stopAgent();
  await socket.echo("without the agent");
  await gateway.startAgent();
  await until("the proxy is found", () => gateway.events.some((it) => it.startsWith("gateway-proxy-found")));
  await gateway.hosts(
    { hostname: HOST, rules: [to("a")] },
    { hostname: "new.example.com", rules: [to("a")] },
  );
  assert.equal((await gateway.ask("new.example.com", "/")).status, 200);
  await socket.echo("with the next agent");
  await load.stop();
  socket.close();

  // It is once found by the agent, and once the agent's own child.
  for (let kill = 0; kill < 2; kill++) {
    const starts = gateway.events.filter((it) => it.startsWith("gateway-proxy-started")).length;
    await gateway.proxy.kill();
    await until("it answers again", async () => {
      const answer = await gateway.ask("new.example.com", "/").catch(() => undefined);
      return answer?.status === 200;
    });
    await until("and an event reports it", () => {
      const { events } = gateway;
      return events.filter((it) => it.startsWith("gateway-proxy-started")).length > starts;
    });
  }
});

test("a gateway restarts after a reboot, without a coordinator and without its run directory", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  await gateway.apply({
    full: true,
    hosts: [{ hostname: HOST, rules: [to("a")] }],
    certificates: [{ id: "c", chainPem: "chain", keyPem: "the key itself" }],
  });
  await gateway.stopAgent();
  await gateway.proxy.kill();
  await gateway.forgetRunDir();
  const kept = await readFile(join(gateway.dir, "gateway", "gateway.sealed"));
  assert.equal(kept.includes("the key itself") || kept.includes(HOST), false);
  await gateway.startAgent();
  await until("it answers again", async () => {
    const answer = await gateway.ask(HOST, "/").catch(() => undefined);
    return answer?.status === 200;
  });
});

test("a node that is no longer a gateway completes requests, then stops the proxy and leaves nothing behind", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const { answer, asking } = await aRequestUnderWay(t, gateway);
  gateway.send({ full: true, gateway: "" });
  answer();
  assert.equal((await asking).body, "done");
  await until("the proxy is gone", async () => !(await gateway.proxy.isRunning()));
  await until(
    "its files are gone",
    async () => (await stat(gateway.places.dir).catch(() => undefined)) === undefined,
  );
  await until("the status is not ready", () => gateway.gateway.status()?.ready === false);
  gateway.send({ full: true, hosts: [{ hostname: HOST, rules: [to("slow", { backends: [] })] }] });
  await until("it serves again", async () => {
    const again = await gateway.ask(HOST, "/").catch(() => undefined);
    return again?.status === 503;
  });
});

test("becomes ready by itself when Envoy opens its port later than it accepts the configuration", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  gateway.serve();
  await gateway.hosts();
  const { admin } = gateway;
  const listeners = admin.listeners.bind(admin);
  admin.listeners = async () => new Set();
  assert.equal(await gateway.apply({ full: true }), "Envoy has not opened the HTTP port yet");
  assert.equal(gateway.gateway.status()?.ready, false);
  admin.listeners = listeners;
  await until("it is ready", () => gateway.gateway.status()?.ready === true);
  assert.equal(gateway.gateway.status()?.message, "");
});

test("reports no version of which the host is no gateway as served, whatever was in progress", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  gateway.serve();
  await gateway.hosts();
  const served: bigint[] = [];
  gateway.gateway.subscribe(({ ready, version }) => ready && served.push(version));
  const { proxy } = gateway;
  const isRunning = proxy.isRunning.bind(proxy);
  const { promise, resolve } = Promise.withResolvers<void>();
  let isHeld = false;
  proxy.isRunning = async () => {
    isHeld = true;
    await promise;
    return isRunning();
  };
  await until("a check of the proxy is in progress", () => isHeld);
  gateway.send({ full: true, gateway: "" });
  proxy.isRunning = isRunning;
  resolve();
  await until("it is retired", () => gateway.gateway.status()?.message === "this node is not a gateway");
  assert.equal(gateway.gateway.status()?.version, 1n);
  assert.deepEqual(served, []);
});

test("reports a rejected configuration with its host, which stays unchanged while other hosts change", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const [a, b] = [await startBackend(t, "a"), await startBackend(t, "b")];
  gateway.serve(service("a", [a.port]), service("b", [b.port]));
  const bad = (value: string) => to("b", { match: { path: { type: "RegularExpression", value } } });
  const host = (name: string, ...rules: Parameters<typeof to>[1][]): Host => ({
    hostname: `${name}.example.com`,
    rules: rules.map((rule) => to("a", rule)),
  });
  await gateway.hosts(host("one", {}), host("two", {}));
  const message = await gateway.apply({
    hosts: [
      { hostname: "one.example.com", rules: [bad("(")] },
      { hostname: "two.example.com", rules: [to("b")] },
      { hostname: "bad.example.com", rules: [bad("[a-z]{1000}".repeat(3))] },
      ...Array.from({ length: 9 }, (_, index) => host(`h${index}`, {})),
    ],
  });
  assert.match(message, /one\.example\.com: .*missing \)/);
  assert.match(message, /bad\.example\.com: .*program size/);
  assert.doesNotMatch(message, /two\.example|h\d\.example/);
  const from = async (name: string): Promise<string> => {
    const { status, body } = await gateway.ask(`${name}.example.com`, "/");
    return status === 200 ? JSON.parse(body).backend : String(status);
  };
  assert.deepEqual(await Promise.all(["one", "two", "bad", "h0", "h8"].map(from)), [
    "a",
    "b",
    "404",
    "a",
    "a",
  ]);
  // A rejected host isn't retried with other changes, but only when it changes itself.
  assert.match(await gateway.apply({ hosts: [host("h9", {})] }), /one\.example\.com/);
  assert.equal(await from("h9"), "a");
  assert.equal(await gateway.apply({ hosts: [host("one", {})], removedHosts: ["bad.example.com"] }), "");

  // The next agent adopts the applied configuration, with the rejected hosts and their reasons.
  const held = { hostname: "two.example.com", rules: [bad("(")] };
  assert.match(await gateway.apply({ hosts: [held] }), /two\.example/);
  const load = new Load({
    ...{ port: gateway.ports.http, headers: { host: "h0.example.com" }, path: "/" },
    ...{ keeping: 2, reconnecting: 2 },
  });
  await gateway.stopAgent();
  await gateway.startAgent();
  await until("it is taken over", () => /two\.example/.test(gateway.gateway.status()?.message ?? ""));
  assert.equal(await from("two"), "b");
  await load.stop();

  // Envoy starts from the accepted configuration, whatever was sent last.
  await gateway.apply({ hosts: [{ hostname: "two.example.com", rules: [bad("(")] }] });
  await gateway.proxy.kill();
  await until("it answers again", async () => (await from("one").catch(() => "")) === "a");
  await until("the reason is known again", () =>
    /two\.example/.test(gateway.gateway.status()?.message ?? ""),
  );
});

test("reports a port in use, and uses it once it is free", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(gateway.ports.http, "127.0.0.1", resolve));
  gateway.send({ full: true, hosts: [{ hostname: HOST, rules: [to("a")] }] });
  await until("the status has the reason", () =>
    /Address already in use/.test(gateway.gateway.status()?.message ?? ""),
  );
  assert.equal(gateway.gateway.status()?.ready, false);
  await new Promise((resolve) => other.close(resolve));
  await until("it is ready", () => gateway.gateway.status()?.ready === true);
  assert.equal(gateway.gateway.status()?.message, "");
  assert.equal((await gateway.ask(HOST, "/")).status, 200);
});

test("the gateway's files are readable by their owner only", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  await gateway.hosts({ hostname: HOST, rules: [to("a")] });
  for (const [name] of await filesOf(gateway)) {
    const { mode } = await stat(join(gateway.places.dir, name));
    assert.equal(mode & 0o077, 0, name);
  }
  assert.equal((await stat(gateway.places.dir)).mode & 0o777, 0o700);
});

test("rotates the access log, and continues in a new file", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  await gateway.hosts({ hostname: HOST, rules: [to("a", { backends: [] })] });
  await truncate(gateway.accessLog, 65 * 1024 * 1024);
  await until("it is set aside", async () => {
    return (await stat(`${gateway.accessLog}.1`).catch(() => undefined)) !== undefined;
  });
  await until("new lines are in the new file", async () => {
    await gateway.ask(HOST, "/");
    return (await gateway.accessLines().catch(() => [])).length > 0;
  });
});

async function filesOf({ places }: GatewayUnderTest): Promise<Map<string, string>> {
  const names = await readdir(places.dir, { recursive: true });
  const found = new Map<string, string>();
  for (const name of names) {
    const text = await readFile(join(places.dir, name), "utf8").catch(() => undefined);
    if (text !== undefined) found.set(name, text);
  }
  return found;
}

/** Sends a request to a service `slow` under HOST, which responds on demand. */
async function aRequestUnderWay(t: TestContext, gateway: GatewayUnderTest) {
  const waiting: (() => void)[] = [];
  const slow = await startBackend(t, "slow", (_, response) => {
    waiting.push(() => response.end("done"));
  });
  gateway.serve(service("slow", [slow.port]));
  await gateway.hosts({ hostname: HOST, rules: [to("slow")] });
  const asking = gateway.ask(HOST, "/");
  await until("it is under way", () => waiting.length > 0);
  return {
    asking,
    answer: () => {
      for (const end of waiting) end();
    },
  };
}
