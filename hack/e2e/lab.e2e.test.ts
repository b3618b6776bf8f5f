import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { showProgress } from "../instance/progress.ts";
import { TEST_LAB, testedKinds } from "../lab-hosts/host-kinds.ts";
import { joinCommand, providePackages, usePackages } from "../lab-hosts/install-fleet.ts";
import { Lab } from "../lab-hosts/lab.ts";
import { planHosts } from "../lab-hosts/lab-plan.ts";
import { loadImage } from "../lab-hosts/load-image.ts";
import { buildBusyboxImage } from "../lib/busybox-image.ts";
import { claimLab } from "../system/claim-lab.ts";
import { distribution, idleNear, LabScene, timed, zonedWeb } from "../system/lab-scene.ts";
import { refuseForeignCredentials, upgradeUnderLoad } from "../system/lab-trials.ts";

const checkout = join(import.meta.dirname, "..", "..");
const IMAGE = "localhost/forage/busybox:1";
const REPLICAS = 6;
const NODE_PORT = 30_080;
/** So many that every pod answers one of them. */
const REQUESTS = 60;
const AGENTS = ["h1", "h2", "h3"];
const LIMIT = { timeout: 240_000 };
/** A node's pods are replaced soon after it is lost, so that the tests needn't wait. */
const SETTINGS = "\nnodes:\n  unreachableTolerationSeconds: 3\n  recoveryGraceSeconds: 1\n";
/** Overwrites the middle of every file of the store. */
const DAMAGE = `cd /var/lib/forage/coordinator/store && find . -type f -size +200c | while read -r file; do
  dd if=/dev/urandom of="$file" bs=1 count=64 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc status=none
done`;
const SLOW_CLOCK = `mkdir -p /etc/systemd/system/forage-agent.service.d
cat > /etc/systemd/system/forage-agent.service.d/clock.conf << END
[Service]
Environment=LD_PRELOAD=$(find /usr/lib -name libfaketime.so.1) FAKETIME=-1h FAKETIME_DONT_FAKE_MONOTONIC=1
END
systemctl daemon-reload && systemctl restart --no-block forage-agent`;
/** Less than the coordinator's store keeps free. */
const LEFT_BYTES = 4 * 1024 * 1024;
const QUIET = showProgress(
  () => {},
  false,
  () => 0,
);

for (const kind of testedKinds(process.env)) testFleet(kind);

function testFleet(kind: string): void {
  describe(`a fleet of booted hosts (${kind})`, { concurrency: false }, () => {
    let lab: Lab;
    let scene: LabScene;
    let release: () => Promise<void>;
    /** The command with which h3 has joined. */
    let used: readonly string[] = [];

    before(async () => {
      release = await claimLab(TEST_LAB);
      lab = await Lab.create(TEST_LAB, kind, planHosts({ count: AGENTS.length, coordinatorOwnHost: true }));
      await lab.driver.prepare(() => {});
      scene = new LabScene(lab);
      await providePackages(lab, checkout, "0.1.0", QUIET);
      await Promise.all(lab.hosts.map(({ name }) => lab.boot(name)));
      for (const host of lab.hosts) await usePackages(lab, host);
    }, LIMIT);
    after(() => release?.(), LIMIT);

    test(
      "from bare Debian to the first container in three commands, and the next host in one",
      LIMIT,
      async (t) => {
        const { seconds } = await timed(async () => {
          await onHost("coordinator", "apt-get -qq --yes install forage-coordinator");
          const [first, ...others] = lab.hosts.filter(({ runsAgent }) => runsAgent);
          assert.ok(first);
          const join = async (host: typeof first): Promise<string> => {
            const command = await joinCommand(lab, host);
            if (host.name === "h3") used = command;
            return onHost(host.name, `apt-get -qq --yes install forage-agent && ${command.join(" ")}`);
          };
          await join(first);
          await loadImage(lab, [first.name], await buildBusyboxImage({ name: IMAGE }));
          await scene.apply([idleNear("near", IMAGE, { nodeSelector: { zone: "z1" } })]);
          assert.equal((await scene.running(first.name)).length, 1);
          await Promise.all(others.map(join));
        });
        await loadImage(lab, ["h2", "h3"], await buildBusyboxImage({ name: IMAGE }));
        await scene.allReady();
        t.diagnostic(`coordinator, three agents and the first container: ${seconds} s`);
        await onHost(
          "coordinator",
          `printf '${SETTINGS.replaceAll("\n", "\\n")}' >> /etc/forage/coordinator.yaml`,
        );
        await onHost("coordinator", "systemctl restart forage-coordinator");
        await scene.allReady();
      },
    );

    test(
      "zones, affinity and a ClusterIP service are as the bundle asks, over all hosts",
      LIMIT,
      async () => {
        await scene.apply([
          zonedWeb(REPLICAS, IMAGE),
          {
            name: "web",
            service: {
              ...{ target: "web", type: "NodePort" },
              ports: [{ name: "http", port: 80, targetPort: 8080, nodePort: NODE_PORT }],
            },
          },
          idleNear("near", IMAGE, { nodeSelector: { zone: "z1" } }),
          idleNear("beside", IMAGE, {
            affinity: {
              podAffinity: {
                required: [{ labelSelector: { matchLabels: { app: "near" } }, topologyKey: "zone" }],
              },
            },
          }),
        ]);
        const pods = await scene.serving("web", REPLICAS);
        assert.deepEqual(distribution(pods), { h1: 2, h2: 2, h3: 2 });
        const [beside] = await scene.serving("beside", 1);
        assert.equal(beside?.node, "h1");
        await scene.until("pods of all hosts answer a pod of the first", async () => {
          const answers = await scene.askFromPod(beside?.name ?? "", "web", REQUESTS);
          return pods.every(({ name }) => answers.has(name));
        });
      },
    );

    test("a host that reboots while the coordinator is off brings its pods back itself", LIMIT, async (t) => {
      const before = await scene.serving("web", REPLICAS);
      const expected = (await scene.running("h2")).length;
      await lab.powerOff("coordinator");
      await lab.reboot("h2");
      await scene.until("all containers run again", async () => {
        return (await scene.running("h2")).length === expected;
      });
      const { stdout: up } = await lab.exec("h2", ["cut", "-d ", "-f1", "/proc/uptime"]);
      const { stdout: since } = await lab.exec("h2", [
        ...["systemctl", "show", "containerd", "--value", "--property=ActiveEnterTimestampMonotonic"],
      ]);
      t.diagnostic(
        `pods are back ${(Number(up) - Number(since) / 1e6).toFixed(1)} s after containerd was up`,
      );
      await lab.boot("coordinator");
      await scene.allReady();
      const after = await scene.serving("web", REPLICAS);
      assert.deepEqual(uids(after), uids(before));
      await onlyTheKnown();
    });

    test(
      "a host that is cut off runs on and restarts containers, and its surplus ends after healing",
      LIMIT,
      async (t) => {
        const before = await scene.running("h3");
        assert.ok(before.length >= 2);
        await lab.partition(["h3"]);
        await scene.until("h3 is Unreachable", async () => isUnreachable("h3"));
        await scene.until("its pods are replaced", async () => {
          const pods = (await scene.pods("web")).filter(({ node, ready }) => node !== "h3" && ready);
          return pods.length === REPLICAS;
        });
        assert.deepEqual(await scene.running("h3"), before);
        const [victim = "", ...others] = before;
        await lab.exec("h3", [
          "ctr",
          "--namespace",
          "forage",
          "tasks",
          "kill",
          "--signal",
          "SIGKILL",
          victim,
        ]);
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
          await onlyTheKnown();
        });
        t.diagnostic(
          `a killed container runs again after ${restarted.seconds} s, the surplus has stopped ${seconds} s after healing`,
        );
        await scene.serving("web", REPLICAS);
      },
    );

    test("the pods of a host without power are replaced, and services follow", LIMIT, async (t) => {
      const ip = await scene.virtualIp("web");
      const startMs = performance.now();
      const since = (): string => ((performance.now() - startMs) / 1000).toFixed(1);
      await lab.powerOff("h2");
      await scene.until("h2 is Unreachable", async () => isUnreachable("h2"));
      const unreachable = since();
      const following = timed(() => answersOnly(ip));
      await scene.until("its pods are replaced", async () => {
        const ready = (await scene.pods("web")).filter((pod) => pod.node !== "h2" && pod.ready);
        return ready.length === REPLICAS;
      });
      t.diagnostic(`Unreachable after ${unreachable} s, all pods replaced after ${since()} s`);
      t.diagnostic(
        `the virtual IP leads only to pods of other hosts ${(await following).seconds} s after that`,
      );
      await lab.boot("h2");
      await scene.allReady();
      await scene.serving("web", REPLICAS);
      await onlyTheKnown();
    });

    test("a full disk of the coordinator refuses writes, and nothing else stops", LIMIT, async (t) => {
      const before = await scene.allRunning();
      const store = "/var/lib/forage/coordinator";
      const changed = [idleNear("beside", IMAGE, { nodeSelector: { zone: "z2" } })];
      const free = Number(await onHost("coordinator", `df --output=avail -B1 ${store} | tail -n 1`));
      t.after(() => onHost("coordinator", `rm -f ${store}/filler`));
      await onHost("coordinator", `fallocate --length ${free - LEFT_BYTES} ${store}/filler`);
      const refusal = await scene.until("a change is refused", async () => scene.refusal(changed));
      assert.match(refusal, /disk|space/);
      assert.deepEqual(await scene.allRunning(), before);
      await scene.allReady();
      await onHost("coordinator", `rm ${store}/filler`);
      await scene.until("changes are taken again", async () => (await scene.refusal(changed)) === undefined);
      const [beside] = await scene.serving("beside", 1);
      assert.equal(beside?.node, "h2");
      await onlyTheKnown();
    });

    test("a damaged store is refused, and its backup brings everything back as it was", LIMIT, async () => {
      const before = await scene.allRunning();
      const pods = uids(await scene.pods("web"));
      const tool = (command: string): string =>
        `forage-coordinator ${command} --config /etc/forage/coordinator.yaml`;
      await onHost("coordinator", "systemctl stop forage-coordinator");
      await onHost("coordinator", tool("backup /var/backups/forage"));
      await onHost("coordinator", DAMAGE);
      await onHost("coordinator", "systemctl start --no-block forage-coordinator");
      await scene.until("the coordinator names the damage", async () => {
        const log = await onHost(
          "coordinator",
          "journalctl --boot --unit forage-coordinator --lines 40 --output cat",
        );
        return /damaged|corrupt/i.test(log);
      });
      await onHost("coordinator", "systemctl stop forage-coordinator");
      await onHost(
        "coordinator",
        "mv /var/lib/forage/coordinator/store /var/lib/forage/coordinator/store.damaged",
      );
      await onHost("coordinator", tool("restore /var/backups/forage"));
      await onHost("coordinator", "systemctl start forage-coordinator");
      await scene.allReady();
      assert.deepEqual(uids(await scene.serving("web", REPLICAS)), pods);
      assert.deepEqual(await scene.allRunning(), before);
    });

    test(
      "a host whose clock is an hour slow names the clocks, and its containers run on",
      LIMIT,
      async () => {
        const before = await scene.running("h3");
        await onHost("h3", "apt-get -qq --yes install faketime");
        await onHost("h3", SLOW_CLOCK);
        await scene.until("the agent names the clocks", async () => {
          const log = await onHost("h3", "journalctl --boot --unit forage-agent --lines 200 --output cat");
          return /not valid by this host's clock/.test(log);
        });
        assert.deepEqual(await scene.running("h3"), before);
        await onHost("h3", "rm -r /etc/systemd/system/forage-agent.service.d && systemctl daemon-reload");
        await onHost("h3", "systemctl restart forage-agent");
        await scene.allReady();
        await onlyTheKnown();
      },
    );

    test("used, foreign and revoked credentials are refused", LIMIT, async () => {
      await refuseForeignCredentials({ lab, scene, timeoutMs: LIMIT.timeout }, "h3", used);
      await scene.serving("web", REPLICAS);
      await onlyTheKnown();
    });

    test("all hosts are upgraded under load, without a lost request", LIMIT, async (t) => {
      const version = "0.1.1";
      await providePackages(lab, checkout, version, QUIET);
      const trial = { lab, scene, timeoutMs: LIMIT.timeout };
      t.diagnostic(await upgradeUnderLoad(trial, { version, port: NODE_PORT }));
    });

    async function onHost(name: string, line: string): Promise<string> {
      return (await lab.exec(name, ["sh", "-c", line], { timeoutMs: LIMIT.timeout })).stdout;
    }

    async function isUnreachable(name: string): Promise<boolean> {
      return (await scene.nodes()).some((node) => node.name === name && node.isUnreachable);
    }

    /** Waits until the containers of all hosts are exactly those of the pods that the coordinator knows. */
    async function onlyTheKnown(): Promise<void> {
      await scene.until("every container belongs to one pod", async () => {
        const pods = (await Promise.all(["web", "near", "beside"].map((name) => scene.pods(name)))).flat();
        const running = await scene.allRunning();
        return (
          running.length === pods.length && pods.every(({ containers: [id = ""] }) => running.includes(id))
        );
      });
    }

    /** Waits until ten requests in a row are answered. */
    async function answersOnly(ip: string): Promise<void> {
      await scene.until("ten requests in a row are answered", async () => {
        for (let count = 0; count < 10; count++)
          if ((await scene.ask("h1", `http://${ip}/`)) === undefined) return false;
        return true;
      });
    }
  });
}

function uids(pods: readonly { readonly uid: string }[]): readonly string[] {
  return pods.map(({ uid }) => uid).sort();
}
