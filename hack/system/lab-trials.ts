import assert from "node:assert/strict";
import { offerKeptPackages } from "../lab-hosts/install-fleet.ts";
import { FIRST_VERSION, type LabFleet } from "./lab-fleet.ts";
import { timed } from "./lab-scene.ts";

/** Longer trials of the lab's fleet. Afterwards all hosts are Ready again. */

const LOGS = "/var/lib/forage/agent/pods";
const MIB = 2 ** 20;
/** This is more than the limit of two logs, and less than the disk. */
const FLOOD_BYTES = 200 * MIB;
const BOUND_BYTES = 60 * MIB;
/** A script that writes to the standard output of the host's first container. */
const FLOOD = `pid=$(ctr --namespace forage tasks list | awk 'NR == 2 { print $2 }')
yes "$(printf %0100d 0)" | head -c ${FLOOD_BYTES} > "/proc/$pid/fd/1"`;
/** A script that fails if the agent doesn't see the host's mounts, or the host doesn't see the agent's. */
const SAME_MOUNTS = `pid=$(systemctl show --property MainPID --value forage-agent)
[ "$(readlink "/proc/$pid/ns/mnt")" = "$(readlink /proc/1/ns/mnt)" ]`;

/**
 * Puts the operator's keys into the credential stores of the coordinator and of one host, before anything is installed.
 */
export async function giveCredentials(fleet: LabFleet, name: string): Promise<void> {
  const store = (file: string): string =>
    `umask 077 && mkdir -p /etc/credstore && cat > /etc/credstore/${file}`;
  await fleet.onHost("coordinator", `head -c 32 /dev/urandom | base64 | (${store("forage-secret-keys")})`);
  await fleet.onHost(name, `head -c 32 /dev/urandom | (${store("forage-journal-key")})`);
}

/** Asserts that both daemons use the operator's keys, and that a host without one has its own key. */
export async function useCredentials(fleet: LabFleet, name: string, without: string): Promise<void> {
  await fleet.onHost("coordinator", "[ ! -e /var/lib/forage/coordinator/keys/secrets.keys ]");
  await fleet.onHost(name, `[ ! -e /var/lib/forage/agent/journal.key ] && ${SAME_MOUNTS}`);
  await fleet.onHost(without, `[ -e /var/lib/forage/agent/journal.key ] && ${SAME_MOUNTS}`);
}

/** Asserts that logs stay bounded on a host while its agent is stopped, and that its containers continue to run. */
export async function boundLogsWithoutAgent(fleet: LabFleet, name: string): Promise<void> {
  const { scene } = fleet;
  const isActive = async (unit: string): Promise<boolean> =>
    (await fleet.onHost(name, `systemctl is-active ${unit} || true`)).trim() === "active";
  const before = await scene.running(name);
  await fleet.onHost(name, "systemctl stop forage-agent");
  await scene.until("the log guard runs", () => isActive("forage-log-guard"));
  await fleet.onHost(name, FLOOD);
  await scene.until("the logs are bounded", async () => {
    const bytes = Number((await fleet.onHost(name, `du -s -B1 ${LOGS}`)).split("\t")[0]);
    return bytes > 0 && bytes < BOUND_BYTES;
  });
  assert.deepEqual(await scene.running(name), before);
  await fleet.onHost(name, "systemctl start forage-agent");
  assert.equal(await isActive("forage-log-guard"), false);
  await scene.allConnected();
  await scene.allReady();
}

/** Upgrades all hosts one after another under load. No request may fail, and no container may be restarted. */
export async function upgradeUnderLoad(
  fleet: LabFleet,
  { version, port }: { readonly version: string; readonly port: number },
): Promise<string> {
  const { lab, scene } = fleet;
  const before = await scene.allRunning();
  const load = await scene.startLoad(lab.host("h1").address, port);
  try {
    const { seconds } = await timed(async () => {
      for (const { name, runsAgent } of lab.hosts) {
        const program = runsAgent ? "forage-agent" : "forage-coordinator";
        await fleet.onHost(name, `apt-get -qq update && apt-get -qq --yes install ${program}`);
        const installed = await fleet.onHost(name, `dpkg-query --show ${program}`);
        assert.ok(installed.includes(version), installed);
        await scene.allReady();
      }
    });
    const { answered, failed, failures, slowestMs } = await load.end();
    assert.equal(failed, 0, failures.join("\n"));
    assert.ok(answered > 0);
    assert.deepEqual(await scene.allRunning(), before);
    return `${answered} requests in ${seconds} s, the slowest took ${slowestMs} ms`;
  } finally {
    await load.end();
  }
}

/** Installs the packages from before the upgrade on all hosts. No container may be restarted. */
export async function downgrade(fleet: LabFleet): Promise<void> {
  const { lab, scene } = fleet;
  const before = await scene.allRunning();
  await offerKeptPackages(lab);
  await Promise.all(
    lab.hosts.map(async ({ name, runsAgent }) => {
      const programs = [
        "forage-runtime",
        ...(runsAgent ? ["forage-agent"] : ["forage", "forage-coordinator"]),
      ];
      const versions = programs.map((program) => `${program}=${FIRST_VERSION}`).join(" ");
      await fleet.onHost(
        name,
        `apt-get -qq update && apt-get -qq --yes --allow-downgrades install ${versions}`,
      );
      const installed = await fleet.onHost(name, `dpkg-query --show ${programs.join(" ")}`);
      assert.equal(installed.split(FIRST_VERSION).length - 1, programs.length, installed);
    }),
  );
  await scene.allConnected();
  await scene.allReady();
  assert.deepEqual(await scene.allRunning(), before);
}

/**
 * Replaces the packages of a host with the archive for other distributions. Its agent must continue with the same
 * containers.
 */
export async function useArchive(fleet: LabFleet, name: string): Promise<void> {
  const { lab, scene } = fleet;
  const before = await scene.running(name);
  const archive = await fleet.buildArchive();
  await lab.copy(name, archive, "/root/forage.tar.gz");
  await fleet.onHost(name, "tar xf /root/forage.tar.gz -C /root");
  await fleet.replacingLate(async () => {
    await fleet.onHost(name, "apt-get -qq --yes remove forage-agent forage-runtime");
    assert.deepEqual(await scene.running(name), before);
    await fleet.onHost(name, "/root/forage-*-linux-*/install.sh agent");
    await fleet.onHost(name, "systemctl is-active forage-agent && systemctl is-enabled forage-agent");
    await scene.allConnected();
    await scene.allReady();
    assert.deepEqual(await scene.running(name), before);
  });
}
