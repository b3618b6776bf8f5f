import { after, before, describe, test } from "node:test";
import { limitFor, missingForLab, testedKinds } from "../lab-hosts/host-kinds.ts";
import { ensurePreviousPackages, findPreviousVersion } from "../lab-hosts/previous-version.ts";
import { addCoordinator, leaveToAnother, moveToEtcd, replaceSharedAuthority } from "../system/lab-etcd.ts";
import { CHECKOUT, FIRST_VERSION, LabFleet, NODE_PORT, REPLICAS } from "../system/lab-fleet.ts";
import { hangDaemon } from "../system/lab-host-files.ts";
import { applyTolerating, runOnThroughPartition } from "../system/lab-partition.ts";
import { downgrade, upgradeUnderLoad } from "../system/lab-trials.ts";

const NEXT_VERSION = "0.1.1";
/** `hack/test --lab-full` sets it. */
const isFull = process.env.FORAGE_LAB_FULL === "1";

for (const kind of testedKinds(process.env)) {
  const skip = isFull ? missingForLab(kind, process.env) : "takes long: sudo hack/test --lab-full";
  await testUpgrade(kind, skip);
  testLongFaults(kind, skip);
}

async function testUpgrade(kind: string, skipped: string | false): Promise<void> {
  const previous = await findPreviousVersion(CHECKOUT);
  const limit = limitFor(kind);
  const skip = skipped || (typeof previous === "string" ? previous : false);
  describe(`an upgrade from the previous version (${kind})`, { concurrency: false, skip }, () => {
    let fleet: LabFleet;

    before(async () => {
      if (typeof previous === "string") return;
      const packages = await ensurePreviousPackages(CHECKOUT, previous, FIRST_VERSION);
      fleet = await LabFleet.boot(kind, packages);
      await start(fleet);
    }, limit);
    after(() => fleet?.close(), limit);

    test("all hosts are upgraded under load, without a lost request or a restart", limit, async (t) => {
      await fleet.provide(NEXT_VERSION);
      t.diagnostic(await upgradeUnderLoad(fleet, { version: NEXT_VERSION, port: NODE_PORT }));
      await fleet.onlyTheKnown();
    });

    test("a downgrade to it keeps all containers", limit, async () => {
      await downgrade(fleet);
      await fleet.scene.serving("web", REPLICAS);
      await fleet.onlyTheKnown();
    });
  });
}

function testLongFaults(kind: string, skip: string | false): void {
  const limit = limitFor(kind);
  /** The partition alone takes 5 minutes. */
  const longLimit = { timeout: 2 * limit.timeout };
  describe(`long faults of booted hosts (${kind})`, { concurrency: false, skip }, () => {
    let fleet: LabFleet;

    before(async () => {
      fleet = await LabFleet.boot(kind);
      await start(fleet);
      await applyTolerating(fleet);
    }, limit);
    after(() => fleet?.close(), limit);

    test(
      "a host that is cut off for 5 minutes continues to run, and only its surplus ends",
      longLimit,
      async (t) => {
        for (const line of await runOnThroughPartition(fleet)) t.diagnostic(line);
      },
    );

    test("the watchdog restarts daemons that hang, but no container", limit, async (t) => {
      const agent = await hangDaemon(fleet, "h1", "forage-agent");
      const coordinator = await hangDaemon(fleet, "coordinator", "forage-coordinator");
      t.diagnostic(`the agent serves again after ${agent} s, the coordinator after ${coordinator} s`);
      await fleet.onlyTheKnown();
    });

    test("two coordinators share a store in etcd", limit, async () => {
      await moveToEtcd(fleet);
      await addCoordinator(fleet, "h1");
      await fleet.onlyTheKnown();
    });

    test("their certificate authority is replaced, and no container is restarted", limit, async () => {
      await replaceSharedAuthority(fleet, "h1");
    });

    test("another coordinator leads with the new authority", limit, async (t) => {
      const seconds = await leaveToAnother(fleet, "h1");
      t.diagnostic(`the other coordinator answered after ${seconds} s`);
      await fleet.onlyTheKnown();
    });
  });
}

/** Starts pods on three hosts, as an operator does. */
async function start(fleet: LabFleet): Promise<void> {
  await fleet.installCoordinator();
  await Promise.all(["h1", "h2", "h3"].map((name) => fleet.joinHost(name)));
  await fleet.loadImage("h1", "h2", "h3");
  await fleet.applyBundle();
  await fleet.scene.serving("web", REPLICAS);
}
