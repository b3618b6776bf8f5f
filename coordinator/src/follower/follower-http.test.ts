import assert from "node:assert/strict";
import { get, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { createPassCounts } from "../http/passed/pass-counts.ts";
import { openFollowerHttp } from "./follower-http.ts";

test("passes requests to a pod port's host name on as connections for any path, and never serves them", async (t) => {
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
        throw new Error("the leader is away");
      },
      passCounts: createPassCounts(),
      behindMs: () => 0,
      handlers: {},
      stopping: new AbortController().signal,
    } as never,
  );
  t.after(() => server.close());
  const { port } = server.address;
  const statusOf = (host: string, path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const collect = (response: IncomingMessage): void => {
        response.resume();
        resolve(response.statusCode ?? 0);
      };
      get({ host: "127.0.0.1", port, path, headers: { host }, agent: false }, collect).on("error", reject);
    });
  const podHost = "p-0123456789abcdef0123.pods.example";
  for (const path of ["/", "/dashboard/", "/api/v1/events", "/.forage/enter?ticket=a"])
    for (const host of [podHost, podHost.toUpperCase(), `${podHost}:7601`])
      assert.equal(await statusOf(host, path), 502, `${host}${path}`);
  assert.equal(asked.length, 12);
  assert.equal(await statusOf("pods.example", "/.well-known/openid-configuration"), 200);
  assert.equal(asked.length, 12);
});
