import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request as requestPlain } from "node:http";
import { request } from "node:https";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const SECRET = "/api/v1/namespaces/shop/secrets/db";
const CANARY = "hunter2-canary";

test(
  "stores a secret, shows it without its values, reveals them on demand, and deletes it",
  LIMIT,
  async (t) => {
    const world = await startWorld(t);
    const token = await world.token("editor", ["shop"]);
    const put = await call(world, "PUT", SECRET, token, {
      stringData: { password: CANARY },
      labels: { app: "web" },
    });
    assert.deepEqual(
      [put.status, put.body.action, put.body.sizes],
      [200, "created", { password: CANARY.length }],
    );
    const got = await call(world, "GET", SECRET, token);
    assert.equal(got.status, 200);
    assert.equal("data" in got.body, false);
    const revealed = await call(world, "GET", `${SECRET}?reveal=true`, token);
    assert.deepEqual(revealed.body.data, { password: Buffer.from(CANARY).toString("base64") });
    const { body } = await call(world, "GET", "/api/v1/namespaces/shop/secrets", token);
    assert.equal((body.items as unknown[]).length, 1);
    assert.equal((await call(world, "PUT", `${SECRET}?createOnly=true`, token, {})).status, 409);
    assert.equal((await call(world, "DELETE", SECRET, token)).status, 200);
    assert.equal((await call(world, "GET", SECRET, token)).status, 404);
  },
);

test("answers a caller without credentials before the body has arrived", LIMIT, async (t) => {
  const world = await startWorld(t);
  const { port } = world.coordinator.http;
  const sending = requestPlain({
    port,
    method: "PUT",
    path: SECRET,
    headers: { "transfer-encoding": "chunked" },
  });
  sending.on("error", () => {});
  t.after(() => sending.destroy());
  sending.write('{"stringData":');
  const [response] = (await once(sending, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 401);
});

test("stores every kind from JSON, and returns it unchanged", LIMIT, async (t) => {
  const world = await startWorld(t);
  const token = await world.token("admin");
  for (const [path, body] of [
    ["/api/v1/namespaces/shop/configmaps/app", { data: { a: Buffer.from("x").toString("base64") } }],
    ["/api/v1/namespaces/shop/registrycredentials/hub", { server: "docker.io", username: "u" }],
    ["/api/v1/namespaces/shop/persistentvolumeclaims/data", { capacity: "1Gi" }],
    [
      "/api/v1/priorityclasses/high",
      { value: 5, neverPreempts: true, globalDefault: false, description: "d" },
    ],
  ] as const) {
    const sent = { ...body, ...(path.includes("registry") && { password: CANARY }) };
    assert.equal((await call(world, "PUT", path, token, sent)).status, 200, path);
    const got = await call(world, "GET", path, token);
    assert.deepEqual({ ...got.body, ...body }, got.body, path);
    assert.doesNotMatch(JSON.stringify(got.body), new RegExp(CANARY));
  }
});

for (const [what, who, method, path, body, status, message] of [
  ["nobody", "", "GET", SECRET, undefined, 401, /no credentials/],
  ["a viewer who reveals", "viewer", "GET", `${SECRET}?reveal=true`, undefined, 403, /needs the role editor/],
  ["a viewer who writes", "viewer", "PUT", SECRET, {}, 403, /needs the role editor/],
  [
    "another namespace's editor",
    "elsewhere",
    "GET",
    SECRET,
    undefined,
    403,
    /does not cover namespace "shop"/,
  ],
  [
    "an editor of one namespace at classes",
    "elsewhere",
    "PUT",
    "/api/v1/priorityclasses/x",
    { value: 1 },
    403,
    /./,
  ],
  [
    "an unknown kind",
    "viewer",
    "GET",
    "/api/v1/namespaces/shop/pods",
    undefined,
    404,
    /there are secrets, configmaps/,
  ],
  ["an unknown field", "editor", "PUT", SECRET, { values: {} }, 400, /values/],
  [
    "what is no base64",
    "editor",
    "PUT",
    SECRET,
    { data: { password: CANARY } },
    400,
    /data\.password: must be base64/,
  ],
  ["a bad key", "editor", "PUT", SECRET, { stringData: { "a/b": "" } }, 400, /object\.secret\.data\[a\/b\]/],
  [
    "a body that is too long",
    "editor",
    "PUT",
    SECRET,
    { stringData: { a: "x".repeat(3_000_000) } },
    400,
    /must not be longer/,
  ],
] as const) {
  test(`refuses ${what} with the reason, and repeats no value`, LIMIT, async (t) => {
    const world = await startWorld(t);
    const tokens = {
      "": async () => "",
      viewer: () => world.token("viewer"),
      editor: () => world.token("editor"),
      elsewhere: () => world.token("editor", ["elsewhere"]),
    };
    const answer = await call(world, method, path, await tokens[who](), body);
    assert.equal(answer.status, status);
    assert.match(String(answer.body.message), message);
    assert.doesNotMatch(JSON.stringify(answer.body), new RegExp(CANARY));
  });
}

test("requires TLS from other hosts, and serves with TLS", LIMIT, async (t) => {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((it) => it !== undefined && !it.internal && it.family === "IPv4")?.address;
  if (address === undefined) return t.skip("this host has no address but loopback");
  const plain = await startWorld(t, {}, { http: { listen: `${address}:0`, tls: false } });
  const refused = await call(plain, "GET", SECRET, await plain.token("admin"));
  assert.equal(refused.status, 412);
  assert.match(String(refused.body.message), /http\.tls: true/);
  const world = await startWorld(t, {}, { http: { listen: `${address}:0`, tls: true } });
  const answer = await tlsGet(world, SECRET, await world.token("admin"));
  assert.match(answer, /there is no secret/);
});

function tlsGet(world: World, path: string, token: string): Promise<string> {
  const { host, port } = world.coordinator.http;
  const headers = { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path, headers, ca: world.caPem, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(text));
    });
    sent.on("error", reject);
    sent.end();
  });
}

async function call(
  world: World,
  method: string,
  path: string,
  token: string,
  body?: object,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const { host, port } = world.coordinator.http;
  const response = await fetch(`http://${host}:${port}${path}`, {
    method,
    headers: {
      ...(token !== "" && { authorization: `Bearer ${token}` }),
      "content-type": "application/json",
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
