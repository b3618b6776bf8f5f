import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { CertificateAuthority } from "@forage/identity/ca";
import { pino } from "pino";
import { aNode, aPod } from "../test/support/entries.ts";
import { until } from "../test/support/until.ts";
import { type Contents, opsOf } from "../test/support/view.ts";
import { readConfig } from "./config.ts";
import { type Core, startCore } from "./core.ts";
import { IdentityIssuer } from "./objects/identity-issuer.ts";
import { openVault } from "./objects/open-vault.ts";
import { createMemoryStore } from "./store/index.ts";

const LIMIT = { timeout: 60_000 };

test("counts no time for deadlines while decisions wait for a node after a start", LIMIT, async (t) => {
  const { core, clock } = await start(t, { nodes: [aNode()], pods: [aPod({ node: "n1" })] });
  clock.advance(1_000);
  assert.equal(core.decides(), false);
  assert.equal(core.time.monotonicMs(), 0);
  core.state.setNodeHealth("n1", { ready: true, message: "", lastSeenMs: clock.nowMs() }, true);
  await until("decisions are made", () => core.decides());
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(1_000);
  assert.equal(core.time.monotonicMs(), 1_000);
});

async function start(
  t: TestContext,
  contents: Contents,
): Promise<{ readonly core: Core; readonly clock: VirtualClock }> {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  for (const op of opsOf(contents)) await store.txn([], [op]);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const core = await startCore({
    ...{ store, clock, epoch: 1, lineage: "lineage-1", clusterId: "test" },
    config: readConfig(["--data-dir", "/nonexistent"], {}),
    authority: await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes }),
    issuer: new IdentityIssuer({ issuer: "test", keys: [privateKey] }),
    vault: await openVault([{ id: "test", bytes: createHash("sha256").update("test").digest() }], store),
    log: pino({ level: "silent" }),
    randomName: (length) => "x".repeat(length),
    randomBytes,
    defer: setImmediate,
    onFatal: (error) => {
      throw error;
    },
  });
  t.after(async () => {
    core.stopSessions();
    await core.close();
  });
  return { core, clock };
}
