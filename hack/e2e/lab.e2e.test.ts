import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { limitFor, missingForLab, testedKinds } from "../lab-hosts/host-kinds.ts";
import { followEndpoints } from "../system/lab-destination.ts";
import { emptyFirstHost, examineHost, startOnOneHost } from "../system/lab-first-host.ts";
import { IMAGE, LabFleet, NODE_PORT, REPLICAS, uids } from "../system/lab-fleet.ts";
import { checkDirectories, spoilDirectories } from "../system/lab-host-files.ts";
import { distribution, idleNear, timed } from "../system/lab-scene.ts";
import { downgrade, upgradeUnderLoad, useArchive } from "../system/lab-trials.ts";

/** The number of requests, large enough that every pod answers one of them. */
const REQUESTS = 60;

for (const kind of testedKinds(process.env)) testFleet(kind);

function testFleet(kind: string): void {
  const skip = missingForLab(kind, process.env);
  const limit = limitFor(kind);
  describe(`a fleet of booted hosts (${kind})`, { concurrency: false, skip }, () => {
    let fleet: LabFleet;

    before(async () => {
      fleet = await LabFleet.boot(kind);
    }, limit);
    after(() => fleet?.close(), limit);

    test(
      "three commands lead from bare Debian to the first container, and one adds the next host",
      limit,
      async (t) => {
        const { scene } = fleet;
        const { seconds } = await timed(() => startOnOneHost(fleet));
        t.diagnostic(`coordinator, agent and the first container on one host: ${seconds} s`);
        await fleet.joinHost("h1");
        await fleet.loadImage("h1");
        await examineHost(fleet, "h1");
        await emptyFirstHost(fleet);
        await scene.apply([idleNear("near", IMAGE, { nodeSelector: { zone: "z1" } })]);
        await scene.until("only this container runs", async () => (await scene.running("h1")).length === 1);
        await Promise.all(["h2", "h3"].map((name) => fleet.joinHost(name)));
        await scene.allReady();
        await fleet.loadImage("h2", "h3");
      },
    );

    test("zones, affinity and a ClusterIP service match the bundle, over all hosts", limit, async () => {
      const { scene } = fleet;
      await fleet.applyBundle();
      const pods = await scene.serving("web", REPLICAS);
      assert.deepEqual(distribution(pods), { h1: 2, h2: 2, h3: 2 });
      const [beside] = await scene.serving("beside", 1);
      assert.equal(beside?.node, "h1");
      await scene.until("pods of all hosts answer a pod of the first", async () => {
        const answers = await scene.askFromPod(beside?.name ?? "", "web", REQUESTS);
        return pods.every(({ name }) => answers.has(name));
      });
    });

    test("a host that reboots while the coordinator is off restores its pods itself", limit, async (t) => {
      const { lab, scene } = fleet;
      const before = await scene.serving("web", REPLICAS);
      const expected = (await scene.running("h2")).length;
      await spoilDirectories(fleet, "coordinator", "h2");
      await lab.powerOff("coordinator");
      await lab.reboot("h2");
      await scene.until("all containers run again", async () => {
        return (await scene.running("h2")).length === expected;
      });
      const up = await fleet.onHost("h2", "cut -d ' ' -f 1 /proc/uptime");
      const since = await fleet.onHost(
        "h2",
        "systemctl show containerd --value --property=ActiveEnterTimestampMonotonic",
      );
      t.diagnostic(
        `pods are back ${(Number(up) - Number(since) / 1e6).toFixed(1)} s after containerd was up`,
      );
      await lab.boot("coordinator");
      await scene.allReady();
      await checkDirectories(fleet, { coordinator: "coordinator", agent: "h2" });
      assert.deepEqual(uids(await scene.serving("web", REPLICAS)), uids(before));
      await fleet.onlyTheKnown();
    });

    test("the pods of a host without power are replaced, and services use the others", limit, async (t) => {
      const { lab, scene } = fleet;
      const ip = await scene.virtualIp("web");
      await fleet.replacingSoon(async () => {
        const stream = await followEndpoints(fleet, "web", REPLICAS);
        t.after(() => stream.end());
        const [startMs, startedAtMs] = [performance.now(), Date.now()];
        const since = (): string => ((performance.now() - startMs) / 1000).toFixed(1);
        await lab.powerOff("h2");
        await scene.until("h2 is Unreachable", () => fleet.isUnreachable("h2"));
        const unreachable = since();
        const [replaced, { seconds }] = await Promise.all([
          fleet.untilReplaced("h2").then(since),
          timed(() => scene.answersOnly("h1", `http://${ip}/`)),
        ]);
        t.diagnostic(`Unreachable after ${unreachable} s, all pods replaced after ${replaced} s`);
        t.diagnostic(`the virtual IP leads only to pods of other hosts ${seconds} s after that`);
        const follows = ((await stream.withoutHost("h2")) - startedAtMs) / 1000;
        t.diagnostic(`Destination's stream has no endpoint of the host after ${follows.toFixed(1)} s`);
        await lab.boot("h2");
      });
      await scene.serving("web", REPLICAS);
      await fleet.onlyTheKnown();
    });

    test("all hosts are upgraded under load, without a lost request", limit, async (t) => {
      const version = "0.1.1";
      await fleet.provide(version);
      t.diagnostic(await upgradeUnderLoad(fleet, { version, port: NODE_PORT }));
    });

    test("a downgrade keeps all containers", limit, () => downgrade(fleet));

    test("an agent from the archive for other distributions takes over from the packages", limit, () =>
      useArchive(fleet, "h3"),
    );
  });
}
