import assert from "node:assert/strict";
import { test } from "node:test";
import { Hono } from "hono";
import type { Bound } from "../http/api/call.ts";
import { cookieHeader, cookieOf, guard } from "./guard.ts";

const SECRET = "a".repeat(43);

/** Returns the answer to a request on the given socket, with the given cookie. */
async function answerTo(socket: object, cookie = ""): Promise<Response> {
  const app = new Hono();
  app.use("*", guard);
  app.get("/", (c) => {
    c.header("set-cookie", cookieHeader(c as unknown as Bound, SECRET));
    return c.text(cookieOf(c as unknown as Bound) ?? "none");
  });
  return app.request("/", { headers: { cookie } }, { incoming: { socket: { localPort: 7601, ...socket } } });
}

test("accepts only the cookie with the secure prefix over TLS", async () => {
  const tls = { localAddress: "192.0.2.1", encrypted: true };
  const answer = await answerTo(tls, `forage-session-7601=b; __Host-forage-session-7601=${SECRET}`);
  assert.equal(
    answer.headers.get("set-cookie"),
    `__Host-forage-session-7601=${SECRET}; HttpOnly; SameSite=Strict; Path=/; Secure`,
  );
  assert.equal(await answer.text(), SECRET);
  assert.equal(await (await answerTo(tls, `forage-session-7601=${SECRET}`)).text(), "none");
});

test("answers only loopback without TLS, and gives coordinators on one host different cookies", async () => {
  for (const localAddress of ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"]) {
    const refused = await answerTo({ localAddress });
    assert.equal(refused.status, 412, localAddress);
    assert.equal(refused.headers.get("set-cookie"), null);
  }
  for (const localAddress of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) {
    const answer = await answerTo({ localAddress }, `forage-session-7602=b; forage-session-7601=${SECRET}`);
    assert.deepEqual([answer.status, await answer.text()], [200, SECRET], localAddress);
  }
});
