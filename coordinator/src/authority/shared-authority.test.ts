import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { copyFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { until } from "../../test/support/until.ts";
import { AUTHORITY_KEY } from "../model/keys.ts";
import { openVault, reseal } from "../objects/open-vault.ts";
import { createMemoryStore } from "../store/index.ts";
import { ClusterAuthority } from "./cluster-authority.ts";
import { adoptStored, followAuthority, leadAuthority } from "./shared-authority.ts";

const KEY = { id: "first", bytes: randomBytes(32) };

test("propagates each step to the followers and their files", async (t) => {
  const { leader, follower, dirOf } = await aCluster(t);
  const stop = followAuthority({ ...follower, log: { error: fail }, onFatal: fail });
  const roots = () => JSON.stringify(follower.authority.roots());
  const isSame = async (): Promise<boolean> => roots() === JSON.stringify(leader.authority.roots());
  await leader.authority.begin();
  await until("the follower has both", isSame);
  assert.equal(follower.authority.nextPin, leader.authority.nextPin);
  assert.equal(statSync(join(dirOf(follower), "authority/next.pem")).mode & 0o777, 0o600);
  await leader.authority.finish();
  await until("the follower has the new one", isSame);
  await stop();
  assert.equal(existsSync(join(dirOf(follower), "authority/next.pem")), false);
  const [ca, expected] = [follower, leader].map((it) => readFileSync(join(dirOf(it), "ca.crt"), "utf8"));
  assert.equal(ca, expected);
});

test("issues nothing by the next authority before every coordinator trusts it, and repeats the step", async (t) => {
  const { leader, follower } = await aCluster(t);
  let refuses = true;
  leader.authority.onChange(() => {
    if (refuses) throw new Error("c2 does not trust it");
  });
  await assert.rejects(leader.authority.begin(), /c2 does not trust it/);
  await adoptStored(follower);
  assert.equal(follower.authority.roots().length, 2);
  assert.equal(follower.authority.nextPin, undefined);
  // Another coordinator becomes the leader, and continues with the same authority.
  await leadAuthority(follower);
  await follower.authority.begin();
  refuses = false;
  await adoptStored(leader);
  assert.equal(leader.authority.nextPin, follower.authority.nextPin);
  assert.ok(leader.authority.nextPin);
});

test("adopts the newest authority on a coordinator that was off during two replacements", async (t) => {
  const { leader, follower } = await aCluster(t);
  for (let at = 0; at < 2; at++) {
    await leader.authority.begin();
    await leader.authority.finish();
  }
  await adoptStored(follower);
  assert.deepEqual(follower.authority.roots(), leader.authority.roots());
});

test("refuses an authority of another cluster, and ignores a state of an earlier epoch", async (t) => {
  const { leader, follower, anAuthority } = await aCluster(t);
  await leader.authority.begin();
  const stranger = { ...follower, authority: await anAuthority() };
  await assert.rejects(adoptStored(stranger), {
    code: "FAILED_PRECONDITION",
    message: /not the cluster's authority/,
  });
  const { pin } = follower.authority;
  await adoptStored({ ...follower, epoch: 2 });
  assert.deepEqual([follower.authority.pin, follower.authority.roots().length], [pin, 1]);
});

test("stores the keys only encrypted, and encrypts them with the newest secret key after it changed", async (t) => {
  const { leader, store, dirOf } = await aCluster(t);
  await leader.authority.begin();
  const stored = async (): Promise<string> =>
    Buffer.from((await store.get(AUTHORITY_KEY))?.value ?? []).toString("latin1");
  const [line = ""] =
    /[A-Za-z0-9+/]{40,}/.exec(readFileSync(join(dirOf(leader), "authority/next.pem"), "utf8")) ?? [];
  assert.ok(line);
  assert.ok(!(await stored()).includes(line));
  const fresh = { id: "second", bytes: randomBytes(32) };
  await reseal([fresh, KEY], store);
  assert.match(await stored(), /second/);
  await adoptStored({ ...leader, vault: await openVault([fresh], store) });
});

/** Starts two coordinators with copies of one authority, over one store. The first one leads. */
async function aCluster(t: TestContext) {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const dirs = new Map<ClusterAuthority, string>();
  const anAuthority = async (copyOf?: ClusterAuthority): Promise<ClusterAuthority> => {
    const dataDir = mkdtempSync(join(tmpdir(), "forage-shared-"));
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const from = copyOf && dirs.get(copyOf);
    if (from !== undefined) {
      await mkdir(join(dataDir, "authority"), { mode: 0o700 });
      await copyFile(join(from, "authority/ca.pem"), join(dataDir, "authority/ca.pem"));
    }
    const onProblem = (_: string, error: unknown): void => fail(error);
    const ca = { nowMs: Date.now, randomBytes };
    const authority = await ClusterAuthority.open({ dataDir, cluster: "test", ca, onProblem });
    dirs.set(authority, dataDir);
    return authority;
  };
  const first = await anAuthority();
  const second = await anAuthority(first);
  const vault = await openVault([KEY], store);
  const [leader, follower] = [first, second].map((authority) => ({ store, epoch: 1, vault, authority }));
  assert.ok(leader && follower);
  await leadAuthority(leader);
  const dirOf = ({ authority }: { readonly authority: ClusterAuthority }): string =>
    dirs.get(authority) ?? "";
  return { store, leader, follower, dirOf, anAuthority };
}

function fail(error: unknown): never {
  throw error;
}
