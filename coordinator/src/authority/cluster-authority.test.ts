import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { nodeId } from "@forage/identity";
import { createKeyAndCsr } from "@forage/identity/csr";
import { checkKeyPair } from "@forage/identity/key-pair-file";
import { ClusterAuthority } from "./cluster-authority.ts";

test("lets servers accept certificates of the next authority before it issues one", async (t) => {
  const { open } = aDataDir(t);
  const authority = await open();
  const [old] = authority.roots();
  const seen: (readonly [number, boolean])[] = [];
  authority.onChange(async () => {
    seen.push([authority.roots().length, (await issuerOf(authority)) === old?.pin]);
  });
  await authority.begin();
  assert.deepEqual(seen, [
    [2, true],
    [2, false],
  ]);
  assert.equal(authority.pin, old?.pin, "servers keep the certificate that all nodes trust");
  assert.equal(await issuerOf(authority), authority.nextPin);
});

test("keeps the result of every step after a crash, and keeps key files private", async (t) => {
  const { dir, open } = aDataDir(t);
  const first = await open();
  await first.begin();
  const next = first.nextPin;
  assert.equal(statSync(join(dir, "authority", "next.pem")).mode & 0o777, 0o600);
  const rolled = await open();
  assert.equal(rolled.certPem, first.certPem);
  assert.equal(rolled.nextPin, next);
  assert.equal(await issuerOf(rolled), next);
  await rolled.finish();
  const { keyPem, chainPem } = await anIssued(rolled);
  const finished = await open();
  assert.equal(finished.pin, next);
  assert.equal(finished.nextPin, undefined);
  assert.equal(existsSync(join(dir, "authority", "next.pem")), false);
  assert.equal(readFileSync(join(dir, "ca.crt"), "utf8"), finished.certPem);
  checkKeyPair({ keyPem, chainPem }, finished.certPem);
});

test("repeats a step that was not completed", async (t) => {
  const { open } = aDataDir(t);
  const authority = await open();
  let fails = true;
  authority.onChange(() => {
    if (fails) throw new Error("no port");
  });
  await assert.rejects(authority.begin(), /no port/);
  assert.equal(authority.nextPin, undefined);
  await assert.rejects(authority.finish(), { code: "FAILED_PRECONDITION" });
  fails = false;
  await authority.begin();
  assert.equal(authority.roots().length, 2);
  await assert.rejects(authority.begin(), { code: "FAILED_PRECONDITION" });
});

test("verifies signatures of the older authority until it is retired", async (t) => {
  const { open } = aDataDir(t);
  const authority = await open();
  const [old] = authority.deriveSecrets("marks");
  await authority.begin();
  const both = authority.deriveSecrets("marks");
  assert.equal(both.length, 2);
  assert.deepEqual(both[1], old);
  await authority.finish();
  assert.deepEqual(authority.deriveSecrets("marks"), [both[0]]);
});

async function issuerOf(authority: ClusterAuthority): Promise<string> {
  return (await anIssued(authority)).authorityPin;
}

async function anIssued(authority: ClusterAuthority) {
  const { keyPem, csrPem } = await createKeyAndCsr();
  return { keyPem, ...(await authority.issueNode(nodeId("n1"), csrPem)) };
}

function aDataDir(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-authority-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const ca = { nowMs: Date.now, randomBytes };
  const onProblem = (_: string, error: unknown): void => {
    throw error;
  };
  return { dir, open: () => ClusterAuthority.open({ dataDir: dir, cluster: "test", ca, onProblem }) };
}
