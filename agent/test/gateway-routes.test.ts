import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Backend, startBackend } from "./backend.ts";
import { GatewayUnderTest, type Rule, service, to } from "./gateway-under-test.ts";
import { until } from "./until.ts";

const HOST = "app.example.com";

interface Scene {
  readonly gateway: GatewayUnderTest;
  readonly a: Backend;
  readonly b: Backend;
  /** Sets the rules of one host, in order. */
  rules(...rules: readonly Rule[]): Promise<void>;
  /** Returns the backend that responds, or the status without a backend. */
  from(path: string, options?: Parameters<GatewayUnderTest["ask"]>[2]): Promise<string>;
}

async function setUp(t: TestContext): Promise<Scene> {
  const gateway = await GatewayUnderTest.start(t);
  const a = await startBackend(t, "a");
  const b = await startBackend(t, "b");
  gateway.serve(service("a", [a.port]), service("b", [b.port]), service("none", []));
  return {
    ...{ gateway, a, b },
    rules: (...rules) => gateway.hosts({ hostname: HOST, rules: [...rules] }),
    async from(path, options) {
      const { status, body } = await gateway.ask(HOST, path, options);
      return status === 200 ? (JSON.parse(body) as { backend: string }).backend : String(status);
    },
  };
}

test("hosts: exact names precede wildcards and the catch-all, whatever the port and case; others are unknown", async (t) => {
  const { gateway } = await setUp(t);
  const c = await startBackend(t, "c");
  gateway.serve(...[...gateway.services.services.values()], service("c", [c.port]));
  await gateway.hosts(
    { hostname: HOST, rules: [to("a")] },
    { hostname: "*.example.com", rules: [to("b")] },
    { hostname: "*.deep.example.com", rules: [to("c")] },
  );
  const from = async (host: string): Promise<string> => {
    const { status, body } = await gateway.ask(host, "/");
    return status === 200 ? JSON.parse(body).backend : String(status);
  };
  for (const [host, expected] of [
    [HOST, "a"],
    ["APP.Example.com", "a"],
    [`${HOST}:${gateway.ports.http}`, "a"],
    [`${HOST}:1`, "a"],
    [`${HOST}.`, "a"],
    ["x.example.com", "b"],
    ["x.y.example.com", "b"],
    ["x.deep.example.com", "c"],
    ["example.com", "404"],
    ["example.org", "404"],
  ] as const)
    assert.equal(await from(host), expected, host);
  await gateway.hosts({ hostname: HOST, rules: [to("a")] }, { hostname: "*", rules: [to("c")] });
  assert.deepEqual([await from(HOST), await from("example.org")], ["a", "c"]);
  const [seen] = c.asked.slice(-1);
  assert.equal(seen?.headers.host, "example.org");
});

test("the backend receives the port that the client named, and the origin of the request", async (t) => {
  const { gateway, a, rules } = await setUp(t);
  await rules(to("a"));
  const headers = { "x-forwarded-for": "192.0.2.9", "x-forwarded-proto": "https" };
  await gateway.ask(`${HOST}:8080`, "/", { headers });
  const seen = a.asked[0]?.headers ?? {};
  assert.equal(seen.host, `${HOST}:8080`);
  // For clients on loopback Envoy reports an address of the host.
  assert.match(String(seen["x-forwarded-for"]), /^192\.0\.2\.9,\d+\.\d+\.\d+\.\d+$/);
  assert.equal(seen["x-forwarded-proto"], "http");
  assert.match(String(seen["x-request-id"]), /^[0-9a-f-]{36}$/);
});

test("paths: exact, by segments and by expression; the first matching rule applies", async (t) => {
  const { rules, from } = await setUp(t);
  const path = (type: string, value: string) => ({ match: { path: { type, value } } });
  for (const [type, value, matching, others] of [
    ["Exact", "/a", ["/a", "/a?b=c"], ["/a/", "/a/b", "/A", "/"]],
    ["PathPrefix", "/a", ["/a", "/a/", "/a/b", "/a?x", "/a/?x"], ["/ab", "/b/a", "/"]],
    ["PathPrefix", "/a/", ["/a", "/a/", "/a/b"], ["/ab"]],
    ["", "/a/b", ["/a/b", "/a/b/c"], ["/a/bc", "/a"]],
    ["PathPrefix", "/", ["/", "/a", "/?x"], []],
    ["PathPrefix", "/a.b", ["/a.b/c"], ["/aXb/c"]],
    ["RegularExpression", "/v[0-9]+/.*", ["/v1/x", "/v22/?a=/"], ["/v/x", "/x/v1/y", "/v1"]],
    ["RegularExpression", "/a|/b", ["/a", "/b", "/a?x"], ["/ab", "/a/b"]],
  ] as const) {
    await rules(to("a", path(type, value)), to("b"));
    for (const it of matching) assert.equal(await from(it), "a", `${type} ${value} takes ${it}`);
    for (const it of others) assert.equal(await from(it), "b", `${type} ${value} leaves ${it}`);
  }
  await rules(to("a", path("PathPrefix", "/secret")));
  assert.equal(await from("/x/../secret"), "a", "what a path means counts");
  assert.equal(await from("/x"), "404");
});

test("headers, queries and methods: all conditions of a match must hold", async (t) => {
  const { rules, from } = await setUp(t);
  const expression = "RegularExpression";
  for (const [match, path, headers, expected] of [
    [{ headers: [{ name: "X-A", value: "1" }] }, "/", { "x-a": "1" }, "a"],
    [{ headers: [{ name: "X-A", value: "1" }] }, "/", { "x-a": "11" }, "b"],
    [{ headers: [{ name: "X-A", value: "1" }] }, "/", {}, "b"],
    [{ headers: [{ type: expression, name: "X-A", value: "v[0-9]+" }] }, "/", { "x-a": "v12" }, "a"],
    [{ headers: [{ type: expression, name: "X-A", value: "v[0-9]+" }] }, "/", { "x-a": "xv12" }, "b"],
    [{ queryParams: [{ name: "q", value: "x" }] }, "/?p=1&q=x", {}, "a"],
    [{ queryParams: [{ name: "q", value: "x" }] }, "/?q=xx", {}, "b"],
    [{ queryParams: [{ name: "q", value: "x" }] }, "/?Q=x", {}, "b"],
    [{ queryParams: [{ name: "q", value: "x" }] }, "/", {}, "b"],
    [{ queryParams: [{ type: expression, name: "q", value: "[a-c]+" }] }, "/?q=abc", {}, "a"],
    [{ queryParams: [{ type: expression, name: "q", value: "[a-c]+" }] }, "/?q=abd", {}, "b"],
    [{ headers: [{ name: "X-A", value: "1" }], queryParams: [{ name: "q", value: "x" }] }, "/?q=x", {}, "b"],
    [
      {
        path: { value: "/p" },
        headers: [
          { name: "X-A", value: "1" },
          { name: "X-B", value: "2" },
        ],
      },
      "/p",
      { "x-a": "1", "x-b": "2" },
      "a",
    ],
  ] as const) {
    await rules(to("a", { match: match as never }), to("b"));
    assert.equal(await from(path, { headers }), expected, JSON.stringify([match, path, headers]));
  }
  await rules(to("a", { match: { method: "POST" } }), to("b"));
  assert.equal(await from("/", { method: "POST", body: "x" }), "a");
  assert.equal(await from("/"), "b");
});

test("header modifiers set, add and remove in both directions, and treat every value literally", async (t) => {
  const { gateway, a, rules } = await setUp(t);
  const change = {
    set: { "X-Set": "%REQ(x-kept)% 100%", "X-Old": "new" },
    add: { "X-Add": "2", "X-New": "only" },
    remove: ["X-Gone"],
  };
  await rules(
    to("a", {
      filters: [
        { filter: { $case: "requestHeaderModifier", value: change } },
        {
          filter: {
            $case: "responseHeaderModifier",
            value: {
              set: { "X-Status": "%RESPONSE_CODE%" },
              add: { "Set-Cookie": "b=2" },
              remove: ["X-From"],
            },
          },
        },
      ],
    }),
  );
  const headers = { "x-old": "old", "x-add": "1", "x-gone": "here", "x-kept": "kept" };
  const answer = await gateway.ask(HOST, "/", { headers });
  const seen = a.asked[0]?.headers ?? {};
  assert.deepEqual(
    ["x-set", "x-old", "x-add", "x-new", "x-gone", "x-kept"].map((name) => seen[name]),
    ["%REQ(x-kept)% 100%", "new", "1, 2", "only", undefined, "kept"].map((it) =>
      it === "1, 2" ? seen["x-add"] : it,
    ),
  );
  assert.match(String(seen["x-add"]), /^1, ?2$/);
  assert.equal(answer.headers["x-status"], "%RESPONSE_CODE%");
  assert.deepEqual(answer.headers["set-cookie"], ["b=2"]);
  assert.equal(answer.headers["x-from"], undefined);
  assert.equal(answer.headers.server, "a", "the backend's own name stays");
});

test("redirects keep the parts that they don't name", async (t) => {
  const { gateway, rules } = await setUp(t);
  const { http } = gateway.ports;
  const at = `${HOST}:${http}`;
  for (const [redirect, host, path, status, location] of [
    [{ scheme: "https" }, at, "/x?y=z", 302, `https://${HOST}/x?y=z`],
    [{ scheme: "https", port: 8443, statusCode: 301 }, at, "/x", 301, `https://${HOST}:8443/x`],
    [{ hostname: "other.example", statusCode: 307 }, at, "/x?y", 307, `http://other.example:${http}/x?y`],
    [{ port: 8080, statusCode: 308 }, at, "/x", 308, `http://${HOST}:8080/x`],
    [{ port: 80 }, at, "/x", 302, `http://${HOST}/x`],
    [{ path: "/new", statusCode: 303 }, at, "/old?y=z", 303, `http://${at}/new?y=z`],
    [{ path: "/new%20%REQ(x)%" }, HOST, "/old", 302, `http://${HOST}/new%20%REQ(x)%`],
    [{ scheme: "https", hostname: "other.example", path: "/n" }, at, "/x", 302, "https://other.example/n"],
  ] as const) {
    await rules({
      route: "shop/r",
      filters: [{ filter: { $case: "requestRedirect", value: redirect } }],
    });
    const answer = await gateway.ask(host, path);
    assert.deepEqual([answer.status, answer.headers.location], [status, location], JSON.stringify(redirect));
  }
});

test("rewrites change only the host and path that the backend receives", async (t) => {
  const { gateway, a, rules } = await setUp(t);
  const seenOf = async (rule: Partial<Rule>, path: string): Promise<string> => {
    await rules(to("a", rule));
    assert.equal((await gateway.ask(HOST, path)).status, 200);
    const seen = a.asked.at(-1);
    return `${seen?.headers.host} ${seen?.url}`;
  };
  const rewrite = (value: object) => [{ filter: { $case: "urlRewrite" as const, value } }];
  assert.equal(await seenOf({ filters: rewrite({ hostname: "inner.example" }) }, "/x"), "inner.example /x");
  for (const [prefix, replacement, path, expected] of [
    ["/foo", "/bar", "/foo", "/bar"],
    ["/foo", "/bar", "/foo/", "/bar/"],
    ["/foo", "/bar", "/foo/x?y=/foo", "/bar/x?y=/foo"],
    ["/foo", "/bar/", "/foo/x", "/bar/x"],
    ["/foo/", "/bar", "/foo/x", "/bar/x"],
    ["/foo", "/", "/foo/bar", "/bar"],
    ["/foo", "/", "/foo", "/"],
    ["/foo", "/", "/foo/", "/"],
    ["/foo", "/", "/foo?x", "/?x"],
    ["/", "/bar", "/x", "/bar/x"],
    ["/", "/bar", "/?x", "/bar/?x"],
    ["/", "/", "/x", "/x"],
    ["/a.b", "/c\\1", "/a.b/a.b", "/c\\1/a.b"],
  ] as const) {
    const rule = {
      match: { path: { type: "PathPrefix", value: prefix } },
      filters: rewrite({ path: { type: "PathPrefix", value: replacement } }),
    };
    assert.equal(await seenOf(rule, path), `${HOST} ${expected}`, `${prefix} → ${replacement}: ${path}`);
  }
  const whole = { filters: rewrite({ path: { type: "Exact", value: "/new\\0" } }) };
  assert.equal(await seenOf(whole, "/a/b?c=d"), `${HOST} /new\\0?c=d`);
});

test("a mirror gets a copy, and its response is discarded", async (t) => {
  const { gateway, a, b, rules } = await setUp(t);
  const mirror = { filter: { $case: "requestMirror" as const, value: { service: "b", port: 80 } } };
  await rules(to("a", { filters: [mirror] }));
  const answer = await gateway.ask(HOST, "/x", { method: "POST", body: "hello" });
  assert.equal(JSON.parse(answer.body).backend, "a");
  await until("the copy has come", () => b.asked.length === 1);
  for (const { asked } of [a, b]) {
    const [seen] = asked;
    assert.deepEqual(
      [seen?.method, seen?.url, seen?.body, seen?.headers.host],
      ["POST", "/x", "hello", HOST],
    );
  }
});

test("backends share requests by weight, and requests to one without pods fail", async (t) => {
  const { rules, from } = await setUp(t);
  const backend = (name: string, weight: number) => ({ namespace: "shop", service: name, port: 80, weight });
  await rules({ route: "shop/r", backends: [backend("a", 9), backend("b", 1)] });
  const counts = new Map<string, number>();
  for (let i = 0; i < 400; i++) {
    const name = await from("/");
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  // 400 draws at 0.1 leave this range once in 10⁹ runs.
  const b = counts.get("b") ?? 0;
  assert.ok(b > 5 && b < 90, `b had ${b} of 400`);
  await rules({ route: "shop/r", backends: [backend("a", 1), backend("unknown", 1)] });
  const seen = new Set<string>();
  for (let i = 0; i < 200 && seen.size < 2; i++) seen.add(await from("/"));
  assert.deepEqual([...seen].sort(), ["503", "a"]);
});

test("responds with 503 without backends or pods, and with 504 after the time-out", async (t) => {
  const { gateway, rules, from } = await setUp(t);
  await rules({ route: "shop/r" });
  assert.equal(await from("/"), "503");
  await rules(to("none"));
  assert.equal(await from("/"), "503");
  const silent = await startBackend(t, "silent", () => undefined);
  gateway.serve(service("silent", [silent.port]));
  await rules(to("silent", { timeoutMs: 150n }));
  assert.equal(await from("/"), "504");
});

test("a dead endpoint among working ones fails no request", async (t) => {
  const { gateway, a, rules, from } = await setUp(t);
  const gone = await startBackend(t, "gone");
  const { port } = gone;
  await new Promise((resolve) => gone.server.close(resolve));
  gateway.serve(service("a", [a.port, port]));
  await rules(to("a"));
  for (let i = 0; i < 30; i++) assert.equal(await from("/", { method: "POST", body: "x" }), "a");
});

test("clients can't control the proxy by its own headers, and receive none of them", async (t) => {
  const { gateway, a, rules } = await setUp(t);
  const slow = await startBackend(t, "slow", (_, response) => {
    setTimeout(() => response.end("late"), 300);
  });
  gateway.serve(service("a", [a.port]), service("slow", [slow.port]));
  await rules(to("slow"));
  const answer = await gateway.ask(HOST, "/", { headers: { "x-envoy-upstream-rq-timeout-ms": "10" } });
  assert.deepEqual([answer.status, answer.body], [200, "late"]);
  assert.deepEqual(
    Object.keys(answer.headers).filter((name) => name.startsWith("x-envoy")),
    [],
  );
});

test("ACME challenges take precedence, also for names below a wildcard", async (t) => {
  const { gateway, from } = await setUp(t);
  const path = "/.well-known/acme-challenge/token-1";
  const challenges = [
    { hostname: HOST, token: "token-1", keyAuthorization: "token-1.proof" },
    { hostname: "new.example.com", token: "token-2", keyAuthorization: "token-2.proof" },
  ];
  const hosts = [
    { hostname: HOST, rules: [to("a")], certificate: "none-yet" },
    { hostname: "*.example.com", rules: [to("b")] },
  ];
  const message = await gateway.apply({ full: true, hosts, challenges });
  assert.match(message, /app\.example\.com: HTTPS is off: certificate none-yet: it has not arrived/);
  const answer = await gateway.ask(HOST, path);
  assert.deepEqual([answer.status, answer.body], [200, "token-1.proof"]);
  const other = await gateway.ask("new.example.com", "/.well-known/acme-challenge/token-2");
  assert.equal(other.body, "token-2.proof");
  assert.equal((await gateway.ask("new.example.com", path)).status, 200, "the wildcard's rules");
  assert.equal(await from("/"), "308");
  await gateway.apply({ full: true, hosts, challenges: [] });
  assert.equal((await gateway.ask(HOST, path)).status, 308);
});

test("logs requests with their route, and answers health checks for any host", async (t) => {
  const { gateway, rules } = await setUp(t);
  await rules(to("a", { route: "shop/web" }));
  await gateway.ask(HOST, "/x?y=z", { headers: { "user-agent": 'quo"te' } });
  const health = await gateway.ask("any.example", "/.well-known/forage/ready");
  assert.equal(health.status, 200);
  await until("the line is written", async () => (await gateway.accessLines()).length > 0);
  const [line] = await gateway.accessLines();
  assert.equal(line?.route, "shop/web");
  assert.deepEqual(
    [line?.method, line?.host, line?.path, line?.status, line?.client, line?.backend, line?.user_agent],
    ["GET", HOST, "/x?y=z", 200, "127.0.0.1", "shop/a/80", 'quo"te'],
  );
  assert.match((await gateway.gateway.metrics()) ?? "", /envoy_cluster_upstream_rq_total/);
});
