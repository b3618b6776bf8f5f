import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { AuditFields } from "@forage/common/audit-chain";
import { parseCoordinatorToken } from "@forage/identity/coordinator-token";
import type { KeyFile } from "@forage/proto/forage/coordinator/v1/coordinator";
import { status } from "@grpc/grpc-js";
import { joinCluster } from "../src/peers/join-cluster.ts";
import { join as joinNode } from "./support/hollow-agent.ts";
import { until } from "./support/until.ts";
import { startWorld, type World } from "./support/world.ts";

const LIMIT = { timeout: 120_000 };
const SECRET = "a secret key";

test("gives one further coordinator the keys of the cluster by a token, and records it", LIMIT, async (t) => {
  const { world, entries } = await aWorld(t);
  const { token } = await world.operator().createCoordinatorToken({ ttlSeconds: 0 });
  const first = hostOf(t, world, token);
  assert.deepEqual(await joinCluster(first), {
    joined: world.address,
    files: ["authority/ca.pem", "keys/secrets.keys"],
    toDo: [],
  });
  assert.equal(readFileSync(join(first.config.dataDir, "authority/ca.pem"), "utf8"), world.authority.certPem);
  assert.equal(readFileSync(join(first.config.dataDir, "keys/secrets.keys"), "utf8"), SECRET);
  await assert.rejects(joinCluster(hostOf(t, world, token)), /the token has been used/);
  await assert.rejects(joinCluster(first), /is there, so this host has keys of a cluster/);

  const stored = await world.store.range("");
  const { secret } = parseCoordinatorToken(token);
  for (const { key, value } of stored.records)
    for (const text of [secret, SECRET])
      assert.ok(!Buffer.from(value).includes(text), `${key} holds no secret`);
  const joins = entries().filter(({ method }) => method?.includes("CoordinatorEnrollmentService"));
  assert.deepEqual(
    joins.map(({ event, result, target }) => [event, result, target?.name]),
    [
      ["call", "OK", "c2"],
      ["refused", "PERMISSION_DENIED", "c2"],
    ],
  );
  const named = { kind: "coordinator", name: "c2", type: "", reason: "CoordinatorJoined" };
  const request = { namespace: "", filter: { ...named, since: undefined }, after: 0n, limit: 10 };
  const found = async () => (await world.operator().listEvents(request)).events;
  await until("the event is recorded", async () => (await found()).length > 0);
  const [event, ...more] = await found();
  assert.deepEqual([event?.type, more], ["Warning", []]);
  assert.match(
    event?.message ?? "",
    /got the keys of the cluster with the token \w+, from 127\.0\.0\.1:\d+$/,
  );
  const made = entries().find(({ method }) => method?.endsWith("/CreateCoordinatorToken"));
  assert.match(made?.caller ?? "", /^token:/);
  assert.ok(!JSON.stringify(entries()).includes(secret));
});

test("gives the keys to one of two coordinators that use a token concurrently", LIMIT, async (t) => {
  const { world } = await aWorld(t);
  const { token } = await world.operator().createCoordinatorToken({ ttlSeconds: 0 });
  const tries = [hostOf(t, world, token), hostOf(t, world, token), hostOf(t, world, token)];
  const results = await Promise.allSettled(tries.map(joinCluster));
  assert.equal(results.filter((it) => it.status === "fulfilled").length, 1);
});

test("refuses wrong, expired and nodes' tokens, and other roles", LIMIT, async (t) => {
  const { world } = await aWorld(t);
  const { token } = await world.operator().createCoordinatorToken({ ttlSeconds: 60 });
  const wrong = token.replace(/.{43}$/, "A".repeat(43));
  await assert.rejects(joinCluster(hostOf(t, world, wrong)), /the token is unknown or wrong/);
  const ofNode = { ttlSeconds: 60, nodeName: "", reusable: false, labels: {}, taints: [] };
  const node = (await world.operator().createJoinToken(ofNode)).token;
  await assert.rejects(joinCluster(hostOf(t, world, node)), { code: "TOKEN_MALFORMED" });
  await assert.rejects(
    joinCluster(hostOf(t, world, node.replace("FLT1", "FCT1"))),
    /the token is unknown or wrong/,
  );
  const asNode = token.replace("FCT1", "FLT1");
  await assert.rejects(joinNode(world, asNode, "n1"), { code: status.PERMISSION_DENIED });
  for (const role of ["viewer", "editor"] as const)
    await assert.rejects(world.operator(await world.token(role)).createCoordinatorToken({ ttlSeconds: 0 }), {
      code: status.PERMISSION_DENIED,
    });
  world.clock.skip(60_000);
  await assert.rejects(joinCluster(hostOf(t, world, token)), /the token has expired/);
});

test("does not send the secret to a coordinator of another cluster", LIMIT, async (t) => {
  const { world } = await aWorld(t);
  const { world: other, entries } = await aWorld(t);
  const { token } = await world.operator().createCoordinatorToken({ ttlSeconds: 0 });
  await assert.rejects(joinCluster(hostOf(t, other, token)), { code: "PIN_MISMATCH" });
  assert.deepEqual(
    entries().filter(({ method }) => method !== undefined),
    [],
  );
});

test(
  "reports which keys are missing, and requires a configuration with the store in etcd",
  LIMIT,
  async (t) => {
    const { world } = await aWorld(t, ["authority/ca.pem"]);
    const { token } = await world.operator().createCoordinatorToken({ ttlSeconds: 0 });
    const host = hostOf(t, world, token);
    await assert.rejects(
      joinCluster({ ...host, config: { ...host.config, store: {} } }),
      /the configuration has no `store.etcd`/,
    );
    const { toDo } = await joinCluster(host);
    assert.match(toDo.join(), /the same secret keys as the others/);
  },
);

test("refuses to create tokens for others on a coordinator with its store on the disk", LIMIT, async (t) => {
  const world = await startWorld(t);
  await assert.rejects(world.operator().createCoordinatorToken({ ttlSeconds: 0 }), {
    code: status.FAILED_PRECONDITION,
    details: /move the store to etcd first/,
  });
});

/** Starts a coordinator whose keys may be passed on, and what it records. */
async function aWorld(
  t: TestContext,
  paths: readonly string[] = ["authority/ca.pem", "keys/secrets.keys"],
): Promise<{ readonly world: World; readonly entries: () => readonly AuditFields[] }> {
  const kept: AuditFields[] = [];
  const audit = {
    append: (fields: AuditFields) => void kept.push(fields),
    read: async () => ({ lines: [], newest: 0 }),
    close: async () => {},
  };
  const readKeyFiles = async (): Promise<KeyFile[]> =>
    paths.map((path) => {
      const text = path === "authority/ca.pem" ? world.authority.certPem : SECRET;
      return { path, content: Buffer.from(text) };
    });
  const world = await startWorld(t, {}, {}, { audit, readKeyFiles });
  return { world, entries: () => kept };
}

/** Creates the host of a joining coordinator. */
function hostOf(t: TestContext, world: World, token: string) {
  const dataDir = mkdtempSync(join(tmpdir(), "forage-join-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const etcd = { endpoints: ["http://127.0.0.1:1"], prefix: "forage", trustTokensSeconds: 60 };
  const config = { dataDir, store: { etcd }, secretKeyFile: undefined };
  const { signal } = new AbortController();
  return { config, address: world.address, token, name: "c2", clock: world.clock, signal };
}
