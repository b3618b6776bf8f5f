import assert from "node:assert/strict";
import { get, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { openFollowerHttp } from "./follower-http.ts";

test("a host name of a pod's port is refused, whatever the path, and never passed on or served", async (t) => {
  const asked: string[] = [];
  const server = await openFollowerHttp(
    {
      config: { http: { listen: "127.0.0.1:0", tls: false, podDomain: "pods.example" } },
      authority: {} as never,
      issuer: { issuer: "", publicKeys: () => [] } as never,
      clock: { schedule: () => () => {} },
    },
    {
      metrics: { render: async () => "", contentType: "text/plain" },
      readiness: () => ({ ready: true, reasons: [] }),
      port: { names: [], tokenWatch: {} },
      calls: { identify: { findToken: () => undefined, nowMs: () => 0 } },
      client: async () => {
        asked.push("leader");
        throw new Error("the leader must not be asked");
      },
      isBehind: () => false,
      handlers: {},
      stopping: new AbortController().signal,
    } as never,
  );
  t.after(() => server.close());
  const { port } = server.address;
  const statusOf = (host: string, path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const take = (response: IncomingMessage): void => {
        response.resume();
        resolve(response.statusCode ?? 0);
      };
      get({ host: "127.0.0.1", port, path, headers: { host }, agent: false }, take).on("error", reject);
    });
  const podHost = "p-0123456789abcdef0123.pods.example";
  for (const path of ["/", "/dashboard/", "/api/v1/events", "/.forage/enter?ticket=a"])
    for (const host of [podHost, podHost.toUpperCase(), `${podHost}:7601`])
      assert.equal(await statusOf(host, path), 421, `${host}${path}`);
  assert.deepEqual(asked, []);
  assert.notEqual(await statusOf("pods.example", "/dashboard/"), 421);
  assert.deepEqual(asked, ["leader"]);
});
