import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { nodeId } from "@forage/identity";
import { CertificateAuthority } from "@forage/identity/ca";
import type { AgentServiceClient, RenewResponse } from "@forage/proto/forage/agent/v1/agent";
import { IdentityFiles } from "./node-identity.ts";
import { renewIdentity } from "./renew.ts";

type Answer = (csr: Buffer) => Promise<RenewResponse>;
type Callback = (error: Error | null, response?: RenewResponse) => void;

/** A coordinator with a scripted answer that records the signing requests. */
function clientOf(answer: Answer, asked: Buffer[]): AgentServiceClient {
  const renew = ({ csr }: { csr: Buffer }, callback: Callback) => {
    asked.push(csr);
    answer(csr).then(
      (response) => callback(null, response),
      (error: Error) => callback(error),
    );
    return { cancel: () => undefined };
  };
  return { renew } as unknown as AgentServiceClient;
}

async function setUp(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "forage-renew-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const authority = await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes });
  const issue: Answer = async (csr) => {
    const { chainPem } = await authority.issueNode(nodeId("n1"), csr);
    return { certificatePem: chainPem, caBundlePem: authority.certPem };
  };
  const files = new IdentityFiles(join(dir, "identity"));
  return { dir: join(dir, "identity"), files, issue, signal: new AbortController().signal };
}

test("repeats a renewal whose response was lost with the same key, from a private file", async (t) => {
  const { dir, files, issue, signal } = await setUp(t);
  const asked: Buffer[] = [];
  const lose: Answer = () => Promise.reject(new Error("lost"));
  await assert.rejects(renewIdentity(clientOf(lose, asked), files, signal), /lost/);
  const { mode } = await stat(join(dir, "renewal.json"));
  assert.equal(mode & 0o777, 0o600);
  await assert.rejects(renewIdentity(clientOf(lose, asked), new IdentityFiles(dir), signal), /lost/);
  const renewed = await renewIdentity(clientOf(issue, asked), new IdentityFiles(dir), signal);
  assert.equal(asked.length, 3);
  for (const csr of asked) assert.ok(csr.equals(asked[0] ?? Buffer.alloc(0)), "one key for all tries");
  assert.deepEqual((await readdir(dir)).sort(), ["ca.pem", "node.pem"]);
  assert.equal((await new IdentityFiles(dir).load())?.pair.serial, renewed.pair.serial);
  await renewIdentity(clientOf(issue, asked), files, signal);
  assert.ok(!asked[3]?.equals(asked[0] ?? Buffer.alloc(0)), "the next renewal has a key of its own");
});

test("sends no request while the key can't be written", async (t) => {
  const { dir, issue, signal } = await setUp(t);
  await mkdir(dir, { recursive: true });
  // A file in place of the directory makes every write fail, even for root.
  await writeFile(join(dir, "blocked"), "");
  const asked: Buffer[] = [];
  const blocked = new IdentityFiles(join(dir, "blocked"));
  await assert.rejects(renewIdentity(clientOf(issue, asked), blocked, signal));
  assert.equal(asked.length, 0);
});
