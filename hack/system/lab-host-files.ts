import assert from "node:assert/strict";
import type { LabFleet } from "./lab-fleet.ts";

/**
 * Trials of the units, users and directories that the packages install on a host. Afterwards all hosts are Ready again.
 */

/** Directories that systemd-tmpfiles creates and corrects at each boot. */
const SHARED = ["/etc/forage root:root 755", "/run/forage root:root 755", "/var/lib/forage root:root 755"];
const COORDINATOR = [...SHARED, "/var/lib/forage/coordinator forage:forage 711"];
const AGENT = [...SHARED, "/var/lib/forage/agent root:root 700"];

/**
 * Makes the packages' directories writable for all users, as a careless operator does. The next boot has to correct
 * them.
 */
export async function spoilDirectories(fleet: LabFleet, ...hosts: readonly string[]): Promise<void> {
  for (const host of hosts) await fleet.onHost(host, "chmod 777 /etc/forage /var/lib/forage && sync");
}

/** Asserts that directories have their owners and modes after a boot, and that the coordinator's user can't log in. */
export async function checkDirectories(
  fleet: LabFleet,
  { coordinator, agent }: { readonly coordinator: string; readonly agent: string },
): Promise<void> {
  const found = async (host: string, expected: readonly string[]): Promise<readonly string[]> => {
    const paths = expected.map((line) => line.split(" ")[0]).join(" ");
    return (await fleet.onHost(host, `stat -c '%n %U:%G %a' ${paths}`)).trim().split("\n");
  };
  assert.deepEqual(await found(coordinator, COORDINATOR), COORDINATOR);
  assert.deepEqual(await found(agent, AGENT), AGENT);
  const user = (await fleet.onHost(coordinator, "getent passwd forage")).trim().split(":");
  assert.deepEqual(user.slice(5), ["/var/lib/forage", "/usr/sbin/nologin"]);
  assert.ok(Number(user[2]) > 0 && Number(user[2]) < 1_000, "it is a user of the system");
}

/**
 * Stops the unit's main loop, like an endless loop. Asserts that systemd restarts it, and returns the seconds until
 * then.
 */
export async function hangDaemon(fleet: LabFleet, host: string, unit: string): Promise<number> {
  const { scene } = fleet;
  const show = async (property: string): Promise<string> =>
    (await fleet.onHost(host, `systemctl show --value --property=${property} ${unit}`)).trim();
  const before = await scene.allRunning();
  const [restarts, pid] = [Number(await show("NRestarts")), await show("MainPID")];
  const startMs = performance.now();
  await fleet.onHost(host, `kill -STOP ${pid}`);
  await scene.until(`systemd has restarted ${unit} on ${host}`, async () => {
    return Number(await show("NRestarts")) === restarts + 1 && (await show("ActiveState")) === "active";
  });
  const seconds = Math.round((performance.now() - startMs) / 1000);
  assert.notEqual(await show("MainPID"), pid);
  const log = await fleet.onHost(host, `journalctl --boot --unit ${unit} --lines 200 --output cat`);
  assert.match(log, /Watchdog timeout/);
  await scene.allConnected();
  await scene.allReady();
  assert.deepEqual(await scene.allRunning(), before);
  return seconds;
}
