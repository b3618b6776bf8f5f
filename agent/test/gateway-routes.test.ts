import assert from "node:assert/strict";
import { test } from "node:test";
import { startBackend } from "./backend.ts";
import { GatewayUnderTest, service, to } from "./gateway-under-test.ts";

test("a host's request is led to its service, others to nobody", async (t) => {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  gateway.serve(service("a", [a.port]));
  await gateway.hosts({ hostname: "app.example.com", rules: [to("a")] });
  const answer = await gateway.ask("app.example.com", "/x?y=z");
  assert.equal(answer.status, 200);
  const { backend, url } = JSON.parse(answer.body);
  assert.deepEqual({ backend, url }, { backend: "a", url: "/x?y=z" });
  assert.equal((await gateway.ask("other.example.com", "/")).status, 404);
});
