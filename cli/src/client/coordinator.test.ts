import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { CertificateAuthority } from "@forage/identity/ca";
import { Client } from "@grpc/grpc-js";
import { Coordinator, operator } from "./coordinator.ts";

test("limits a request to half a minute unless --timeout is given", async (t) => {
  const { certPem } = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const deadlines: unknown[] = [];
  t.mock.method(Client.prototype, "makeUnaryRequest", (...given: readonly unknown[]) => {
    deadlines.push((given.at(-2) as { readonly deadline?: unknown }).deadline);
    setImmediate(given.at(-1) as (error: null, response: object) => void, null, {});
    return { cancel: () => undefined };
  });
  const about = { server: "127.0.0.1:1", otherServers: [], caFile: "/ca", token: "t", tokenSource: "/t" };
  for (const timeoutMs of [undefined, 5_000]) {
    const { signal } = new AbortController();
    const options = { signal, nowMs: () => 1_000_000, timeoutMs };
    const coordinator = new Coordinator({ ...about, caPem: certPem }, options);
    await coordinator.call(operator.listPods, { namespace: "", labels: {} } as never);
    coordinator.close();
  }
  assert.deepEqual(deadlines, [1_030_000, 1_005_000]);
});
