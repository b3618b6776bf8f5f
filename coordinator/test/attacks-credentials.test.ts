import assert from "node:assert/strict";
import { test } from "node:test";
import { type ServiceError, status } from "@grpc/grpc-js";
import { aContainerService, aRequest } from "./support/requests.ts";
import { collected, until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

/** An attacker keeps using credentials that were revoked or have expired. */

const LIMIT = { timeout: 120_000 };
/** The rollout stays in progress for the whole test. */
const ROLLOUT = {
  progressDeadlineSeconds: 86_400,
  placementDeadlineSeconds: 86_400,
  stableSeconds: 0,
};
const DAY_MS = 24 * 3600 * 1000;
const IN_SHOP = { namespace: "shop", labels: {}, workload: "", node: "", name: "" };
const ASKED = { namespaces: [], ttlSeconds: 0n, description: "ci", neverExpires: false };

for (const [what, end, problem] of [
  [
    "revoked",
    async (world: World, id: string) => void (await world.operator().revokeApiToken({ id })),
    /the token was revoked/,
  ],
  ["expired", async (world: World) => world.clock.skip(3_600_000), /the token has expired/],
] as const)
  test(`ends every stream of a token within a second once it is ${what}`, LIMIT, async (t) => {
    const world = await startWorld(t, {}, { rollout: ROLLOUT });
    const { token, id } = await world
      .operator()
      .createApiToken({ ...ASKED, role: "editor", ttlSeconds: 3_600n });
    const { rolloutId } = await world.forage().applyResources(aRequest("a1", [waiting()]));
    const subject = { namespace: "shop", filter: undefined, after: 0n };
    const streams = [
      collected(world.forage(token).watchRollout({ rolloutId })),
      collected(world.operator(token).watchEvents(subject)),
      collected(
        world.destination(token).get({ scheme: "", path: "web.shop.svc.cluster.local", contextToken: "" }),
      ),
      sse(world, token),
    ];
    const outcomes = streams.map((stream) =>
      stream.then(
        () => "ended",
        (error: ServiceError) => `${error.code} ${error.details}`,
      ),
    );
    let open = outcomes.length;
    for (const outcome of outcomes) void outcome.then(() => open--);
    await until("the calls are known", async () => (await tokenOf(world, id))?.lastUsedAt !== undefined);
    assert.equal(open, 4, "all streams are open before");
    const startedMs = world.clock.monotonicMs();
    await end(world, id);
    const skipped = what === "expired" ? 3_600_000 : 0;
    const results = await Promise.all(outcomes);
    const tookMs = world.clock.monotonicMs() - startedMs - skipped;
    for (const result of results.slice(0, 3)) {
      assert.match(result, problem);
      assert.ok(result.startsWith(`${status.UNAUTHENTICATED} `), result);
    }
    // Tokens are otherwise checked every 10 s, so only the record's change or the timer for the
    // expiry can be this early. `token-watch.test.ts` tests the exact times with a virtual clock.
    assert.ok(tookMs < 9_000, `${tookMs} ms`);
    await assert.rejects(world.operator(token).listPods(IN_SHOP), { code: status.UNAUTHENTICATED });
  });

test("limits the lifetime of a token to 90 days by default", LIMIT, async (t) => {
  const world = await startWorld(t);
  const before = world.clock.nowMs();
  const normal = await world.operator().createApiToken({ ...ASKED, role: "viewer" });
  const eternal = await world.operator().createApiToken({ ...ASKED, role: "viewer", neverExpires: true });
  const expiryMs = Number(normal.expiresAt?.seconds ?? 0n) * 1000;
  assert.ok(Math.abs(expiryMs - before - 90 * DAY_MS) < 60_000, String(normal.expiresAt?.seconds));
  assert.equal(eternal.expiresAt, undefined);
  // The connections are opened before the skip, because the server's certificate will have expired
  // afterwards.
  const [first, second] = [world.operator(normal.token), world.operator(eternal.token)];
  await Promise.all([first.listPods(IN_SHOP), second.listPods(IN_SHOP)]);
  world.clock.skip(90 * DAY_MS);
  await assert.rejects(first.listPods(IN_SHOP), { details: "the token has expired" });
  await second.listPods(IN_SHOP);
});

test("lists tokens without their secrets, and removes expired ones after a week", LIMIT, async (t) => {
  const world = await startWorld(t);
  const { token, id } = await world
    .operator()
    .createApiToken({ ...ASKED, role: "editor", namespaces: ["shop"], ttlSeconds: 3600n });
  assert.equal((await tokenOf(world, id))?.lastUsedAt, undefined);
  await world.operator(token).listPods(IN_SHOP);
  const listed = await tokenOf(world, id);
  assert.deepEqual(
    [listed?.role, listed?.namespaces, listed?.description, listed?.expired],
    ["editor", ["shop"], "ci", false],
  );
  assert.ok(listed?.lastUsedAt !== undefined);
  const secret = token.split("_").slice(2).join("_");
  assert.ok(!JSON.stringify(await world.operator().listApiTokens({}), text).includes(secret));
  await world.restart();
  assert.ok((await tokenOf(world, id))?.lastUsedAt !== undefined, "the last use survives a restart");
  world.clock.skip(3600_000);
  assert.equal((await tokenOf(world, id))?.expired, true);
  world.clock.skip(8 * DAY_MS);
  await until("it is gone", async () => {
    world.clock.skip(600_000);
    return (await tokenOf(world, id)) === undefined;
  });
  assert.equal(await world.store.get(`api-token-uses/${id}`), undefined);
});

test("refuses to revoke the last admin token, and distinguishes unknown tokens", LIMIT, async (t) => {
  const world = await startWorld(t);
  const [only] = (await world.operator().listApiTokens({})).tokens;
  assert.equal(only?.role, "admin");
  await assert.rejects(world.operator().revokeApiToken({ id: only?.id ?? "" }), {
    code: status.FAILED_PRECONDITION,
    details: /create another one first/,
  });
  await assert.rejects(world.operator().revokeApiToken({ id: "0".repeat(12) }), { code: status.NOT_FOUND });
});

function waiting() {
  return aContainerService("web", {
    scaling: { replicas: 1 },
    podConfig: { nodeSelector: { none: "such" } },
  });
}

function text(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

async function tokenOf(world: World, id: string) {
  return (await world.operator().listApiTokens({})).tokens.find((token) => token.id === id);
}

/** Reads events over HTTP until the stream ends. */
async function sse(world: World, token: string): Promise<void> {
  const { host, port } = world.coordinator.http;
  const response = await fetch(`http://${host}:${port}/api/v1/namespaces/shop/events`, {
    headers: { accept: "text/event-stream", authorization: `Bearer ${token}` },
  });
  assert.equal(response.status, 200);
  for await (const _ of response.body ?? []);
}
