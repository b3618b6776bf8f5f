import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { GatewayUpdate } from "@forage/proto/forage/agent/v1/agent";
import { systemClock } from "../clock.ts";
import { JournalKey } from "../journal/journal-key.ts";
import { KnownGateway } from "./known-gateway.ts";

type Update = Parameters<typeof GatewayUpdate.fromPartial>[0];
const key = new JournalKey(randomBytes(32), "test");

test("applies a full update and then changes, and counts several parts as one update", async (t) => {
  const { known, apply, notified } = await open(t);
  apply({ full: true, hosts: [host("a"), host("b")], certificates: [{ id: "c" }], version: 1n });
  assert.equal(notified(), 1);
  apply({ hosts: [host("c")], more: true });
  assert.equal(notified(), 0);
  assert.deepEqual([...known.hosts.keys()], ["a", "b"]);
  apply({ removedHosts: ["a"], removedCertificates: ["c"], challenges: [{ token: "t" }], version: 2n });
  assert.equal(notified(), 1);
  assert.deepEqual([...known.hosts.keys()].sort(), ["b", "c"]);
  assert.equal(known.certificates.size, 0);
  assert.deepEqual([known.challenges.length, known.version], [1, 2n]);
  apply({ full: true, hosts: [host("d")], more: true });
  apply({ hosts: [host("e")], version: 3n });
  assert.deepEqual([...known.hosts.keys()].sort(), ["d", "e"]);
  assert.equal(known.challenges.length, 0);
});

test("discards an update that was incomplete when the connection broke", async (t) => {
  const { known, apply } = await open(t);
  apply({ full: true, hosts: [host("a")] });
  apply({ full: true, hosts: [host("b")], more: true });
  known.restart();
  apply({ hosts: [host("c")] });
  assert.deepEqual([...known.hosts.keys()].sort(), ["a", "c"]);
});

test("restores the stored configuration after a restart, encrypts it, and ignores an unreadable file", async (t) => {
  const { known, apply, dir } = await open(t);
  apply({
    ...{ full: true, gateway: "edge", version: 7n, hosts: [host("app.example.com")] },
    certificates: [{ id: "c", chainPem: "chain", keyPem: "very secret" }],
  });
  await known.close();
  const file = join(dir, "gateway.sealed");
  const bytes = await readFile(file);
  for (const text of ["very secret", "app.example.com"]) assert.equal(bytes.includes(text), false, text);
  const { known: again } = await open(t, dir);
  assert.deepEqual(
    [again.gateway, again.version, [...again.hosts.keys()]],
    ["edge", 7n, ["app.example.com"]],
  );
  assert.equal(again.certificates.get("c")?.keyPem, "very secret");
  await writeFile(file, bytes.subarray(1));
  const { known: damaged, errors } = await open(t, dir);
  assert.equal(damaged.hosts.size, 0);
  assert.equal(errors.length, 1);
});

async function open(t: TestContext, at?: string) {
  const dir = at ?? (await mkdtemp(join(tmpdir(), "forage-gateway-")));
  const errors: unknown[] = [];
  const known = await KnownGateway.open({ dir, key, clock: systemClock, onError: (it) => errors.push(it) });
  let count = 0;
  known.subscribe(() => count++);
  t.after(async () => {
    await known.close();
    if (at === undefined) await rm(dir, { recursive: true });
  });
  const apply = (update: Update): void =>
    known.apply(GatewayUpdate.fromPartial({ gateway: "default", ...update }));
  const notified = (): number => {
    const since = count;
    count = 0;
    return since;
  };
  return { dir, known, errors, apply, notified };
}

function host(hostname: string) {
  return { hostname };
}
