import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { limitFor, missingForLab, testedKinds } from "../lab-hosts/host-kinds.ts";
import {
  refuseCrossingToken,
  refuseForeignReport,
  refuseRemovedHost,
  refuseReplayedJoin,
  replaceAuthority,
} from "../system/lab-credential-trials.ts";
import { IMAGE, LabFleet, REPLICAS, uids } from "../system/lab-fleet.ts";
import { idleNear, timed } from "../system/lab-scene.ts";
import { boundLogsWithoutAgent, giveCredentials, useCredentials } from "../system/lab-trials.ts";

/** Overwrites the middle of every file of the store. */
const DAMAGE = `cd /var/lib/forage/coordinator/store && find . -type f -size +200c | while read -r file; do
  dd if=/dev/urandom of="$file" bs=1 count=64 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc status=none
done`;
const withClock = (offset: string): string => `mkdir -p /etc/systemd/system/forage-agent.service.d
cat > /etc/systemd/system/forage-agent.service.d/clock.conf << END
[Service]
Environment=LD_PRELOAD=$(find /usr/lib -name libfaketime.so.1) FAKETIME=${offset} FAKETIME_DONT_FAKE_MONOTONIC=1
END
systemctl daemon-reload && systemctl restart --no-block forage-agent`;
/** This is less than the coordinator's store keeps free. */
const LEFT_BYTES = 4 * 1024 * 1024;

for (const kind of testedKinds(process.env)) testFaults(kind);

function testFaults(kind: string): void {
  const skip = missingForLab(kind, process.env);
  const limit = limitFor(kind);
  describe(`faults of booted hosts (${kind})`, { concurrency: false, skip }, () => {
    let fleet: LabFleet;
    /** The token with which h3 has joined. */
    let used = "";

    before(async () => {
      fleet = await LabFleet.boot(kind);
      await giveCredentials(fleet, "h1");
      await fleet.installCoordinator();
      [, , used = ""] = await Promise.all(["h1", "h2", "h3"].map((name) => fleet.joinHost(name)));
      await fleet.loadImage("h1", "h2", "h3");
      await fleet.applyBundle();
      // Pods of `web` that leave this host must not return to it.
      await fleet.scene.apply([idleNear("far", IMAGE, { nodeSelector: { zone: "z3" } })]);
      await fleet.scene.serving("web", REPLICAS);
    }, limit);
    after(() => fleet?.close(), limit);

    test(
      "a host that is cut off continues to run and restart containers, and its surplus ends after healing",
      limit,
      async (t) => {
        const { lab, scene } = fleet;
        const before = await scene.running("h3");
        assert.ok(before.length >= 2);
        await fleet.replacingSoon(async () => {
          await lab.partition(["h3"]);
          await scene.until("h3 is Unreachable", () => fleet.isUnreachable("h3"));
          await fleet.untilReplaced("h3");
          assert.deepEqual(await scene.running("h3"), before);
          const [victim = "", ...others] = before;
          await fleet.onHost("h3", `ctr --namespace forage tasks kill --signal SIGKILL ${victim}`);
          const restarted = await timed(() =>
            scene.until("its own agent restarts a killed container", async () => {
              const running = await scene.running("h3");
              return running.length === before.length && !running.includes(victim) ? running : undefined;
            }),
          );
          assert.ok(others.every((id) => restarted.value.includes(id)));
          const { seconds } = await timed(async () => {
            await lab.heal();
            await scene.allReady();
            await fleet.onlyTheKnown();
          });
          t.diagnostic(
            `a killed container runs again after ${restarted.seconds} s, the surplus has stopped ${seconds} s after healing`,
          );
        });
        await scene.serving("web", REPLICAS);
      },
    );

    test("a full disk of the coordinator refuses writes and stops nothing else", limit, async (t) => {
      const { scene } = fleet;
      const before = await scene.allRunning();
      const store = "/var/lib/forage/coordinator";
      const changed = [idleNear("beside", IMAGE, { nodeSelector: { zone: "z2" } })];
      const free = Number(await fleet.onHost("coordinator", `df --output=avail -B1 ${store} | tail -n 1`));
      t.after(() => fleet.onHost("coordinator", `rm -f ${store}/filler`));
      await fleet.onHost("coordinator", `fallocate --length ${free - LEFT_BYTES} ${store}/filler`);
      // Before that, it would accept a small change, whose rollout would wait for the disk.
      await scene.until("the coordinator has noticed that its disk is full", async () =>
        /MiB are free/.test((await scene.readiness()).join()),
      );
      const refusal = await scene.refusal(changed);
      assert.match(refusal ?? "", /disk|space/);
      assert.deepEqual(await scene.allRunning(), before);
      await scene.allReady();
      await fleet.onHost("coordinator", `rm ${store}/filler`);
      await scene.until("the coordinator is ready", async () => (await scene.readiness()).length === 0);
      assert.equal(await scene.refusal(changed), undefined);
      const [beside] = await scene.serving("beside", 1);
      assert.equal(beside?.node, "h2");
      await fleet.onlyTheKnown();
    });

    test("a damaged store is refused, and the newest backup restores everything", limit, async () => {
      const { lab, scene } = fleet;
      const before = await scene.allRunning();
      const pods = uids(await scene.pods("web"));
      const onCoordinator = (line: string): Promise<string> => fleet.onHost("coordinator", line);
      await lab.forage(["backup", "create"]);
      await onCoordinator("systemctl stop forage-coordinator");
      await onCoordinator(DAMAGE);
      await onCoordinator("systemctl start --no-block forage-coordinator");
      await scene.until("the coordinator names the damage", async () => {
        const log = await onCoordinator(
          "journalctl --boot --unit forage-coordinator --lines 40 --output cat",
        );
        return /damaged|corrupt/i.test(log);
      });
      await fleet.restoreNewest();
      await scene.allReady();
      assert.deepEqual(uids(await scene.serving("web", REPLICAS)), pods);
      assert.deepEqual(await scene.allRunning(), before);
    });

    test(
      "a host whose clock is three hours slow reports the clocks, and a fast one continues to work",
      limit,
      async () => {
        const { scene } = fleet;
        const before = await scene.running("h3");
        assert.ok(before.length > 0);
        await fleet.onHost("h3", "apt-get -qq --yes install faketime");
        await fleet.onHost("h3", withClock("-3h"));
        await scene.until("the agent names the clocks", async () => {
          const log = await fleet.onHost(
            "h3",
            "journalctl --boot --unit forage-agent --lines 200 --output cat",
          );
          return /not valid by this host's clock/.test(log);
        });
        assert.deepEqual(await scene.running("h3"), before);
        await fleet.onHost("h3", withClock("+1h"));
        await scene.allConnected();
        await scene.allReady();
        assert.deepEqual(await scene.running("h3"), before);
        const { stdout } = await fleet.lab.forage(["doctor"], { allowFailure: true });
        assert.match(stdout, /h3.*clock/);
        const dropIns = "/etc/systemd/system/forage-agent.service.d";
        await fleet.onHost(
          "h3",
          `rm -r ${dropIns} && systemctl daemon-reload && systemctl restart forage-agent`,
        );
        await scene.allReady();
        await fleet.onlyTheKnown();
      },
    );

    test("daemons use the keys of the host's credential store, and the agent shares its mounts", limit, () =>
      useCredentials(fleet, "h1", "h2"),
    );

    test("logs stay bounded while an agent is stopped", limit, async () => {
      await boundLogsWithoutAgent(fleet, "h2");
      await fleet.scene.serving("web", REPLICAS);
      await fleet.onlyTheKnown();
    });

    test("a running coordinator is restored from its newest backup with one command", limit, async () => {
      const { scene } = fleet;
      const before = await scene.allRunning();
      const pods = uids(await scene.serving("web", REPLICAS));
      await fleet.restoreNewest();
      await scene.allConnected();
      await scene.allReady();
      assert.deepEqual(uids(await scene.serving("web", REPLICAS)), pods);
      assert.deepEqual(await scene.allRunning(), before);
    });

    test("the certificate authority is replaced, and no container is restarted", limit, async () => {
      const [pod] = await fleet.scene.serving("beside", 1);
      await replaceAuthority(fleet, pod?.name ?? "");
    });

    test("foreign, repeated and revoked credentials are refused and recorded", limit, async (t) => {
      const pods = await fleet.scene.serving("web", REPLICAS);
      const [far] = await fleet.scene.serving("far", 1);
      const victim = pods.find(({ node }) => node !== "h3");
      await refuseCrossingToken(fleet);
      await refuseForeignReport(fleet, "h3", victim?.uid ?? "");
      assert.deepEqual(uids(await fleet.scene.serving("web", REPLICAS)), uids(pods));
      await refuseReplayedJoin(fleet);
      const seconds = await refuseRemovedHost(fleet, "h3", { used, pod: far?.name ?? "" });
      t.diagnostic(`a command on the removed host ended after ${seconds} s`);
      await fleet.scene.serving("web", REPLICAS);
      await fleet.onlyTheKnown();
    });
  });
}
