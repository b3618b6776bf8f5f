import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "@forage/identity/ca";
import { ensureEtcd, etcdArguments } from "../lib/etcd-server.ts";
import { replaceAuthority } from "./lab-credential-trials.ts";
import type { LabFleet } from "./lab-fleet.ts";
import { timed } from "./lab-scene.ts";

/**
 * Several coordinators on booted hosts that share one store in etcd, set up by the steps of
 * docs/how-to/store-in-etcd.md.
 */

const ETCD_PORT = 2379;
const ETCD_DIR = "/etc/forage/etcd";
const SETTINGS_FILE = "/etc/forage/coordinator.yaml";
const SETTINGS = `--config ${SETTINGS_FILE}`;
const CA_FILE = "/var/lib/forage/coordinator/ca.crt";
const UNIT = "forage-coordinator";

/** Starts etcd on the coordinator's host and moves the store into it. */
export async function moveToEtcd(fleet: LabFleet): Promise<void> {
  const { lab, scene } = fleet;
  const { name, address } = lab.coordinator;
  await startEtcd(fleet);
  const store = `store:\\n  etcd:\\n    endpoints: [https://${address}:${ETCD_PORT}]\\n    ca: ${ETCD_DIR}/ca.pem\\n`;
  await fleet.onHost(
    name,
    `printf '\\nnames: [${address}]\\n${store}' >> ${SETTINGS_FILE} && systemctl stop ${UNIT} &&
     forage-coordinator migrate etcd ${SETTINGS} && systemctl start ${UNIT}`,
  );
  await scene.allConnected();
  await scene.allReady();
}

/** Installs a second coordinator on a host with an agent, and waits until all agents have the addresses of both. */
export async function addCoordinator(fleet: LabFleet, name: string): Promise<void> {
  const { lab, scene } = fleet;
  const { address } = lab.host(name);
  const coordinator = lab.coordinator;
  await fleet.onHost(name, `systemctl mask ${UNIT} && apt-get -qq --yes install ${UNIT}`);
  for (const file of [SETTINGS_FILE, `${ETCD_DIR}/ca.pem`]) {
    const content = await fleet.onHost(coordinator.name, `cat ${file}`);
    await lab.exec(name, ["sh", "-c", 'mkdir -p "$(dirname "$0")" && cat > "$0"', file], {
      input: content.replace(`names: [${coordinator.address}]`, `names: [${address}]`),
    });
  }
  const [line = ""] =
    /^echo FCT1\..*$/m.exec(
      (await lab.forage(["coordinator", "add", "--coordinator", `${coordinator.address}:7600`])).stdout,
    ) ?? [];
  await fleet.onHost(name, `${line} && systemctl unmask ${UNIT} && systemctl enable --now ${UNIT}`);
  await untilServing(fleet, 2);
  const agents = lab.hosts.filter(({ runsAgent }) => runsAgent);
  await scene.until("all agents know both coordinators", async () => {
    const known = await Promise.all(
      agents.map((host) => fleet.onHost(host.name, "cat /var/lib/forage/agent/coordinators || true")),
    );
    return known.every((text) => text.includes(address) && text.includes(coordinator.address));
  });
  await scene.allReady();
}

/** Replaces the authority of both coordinators. No container may be restarted, and both must end with the same new one. */
export async function replaceSharedAuthority(fleet: LabFleet, follower: string): Promise<void> {
  const { lab, scene } = fleet;
  const [pod] = await scene.serving("beside", 1);
  const sums = async (): Promise<readonly string[]> =>
    Promise.all([lab.coordinator.name, follower].map((name) => fleet.onHost(name, `sha256sum < ${CA_FILE}`)));
  const before = await sums();
  assert.equal(before[0], before[1]);
  await replaceAuthority(fleet, pod?.name ?? "");
  await scene.until("both coordinators have the new authority alone", async () => {
    const [first, second] = await sums();
    return first === second && first !== before[0];
  });
  const count = await fleet.onHost(follower, `grep -c BEGIN ${CA_FILE}`);
  assert.equal(count.trim(), "1");
  await untilServing(fleet, 2);
}

/** Stops the leader. Returns the seconds until the other coordinator answered the `forage` command. */
export async function leaveToAnother(fleet: LabFleet, follower: string): Promise<number> {
  const { lab, scene } = fleet;
  const { name } = lab.coordinator;
  const before = await scene.allRunning();
  // The command stores the addresses of all coordinators.
  await untilServing(fleet, 2);
  await fleet.onHost(name, `systemctl stop ${UNIT}`);
  const { seconds } = await timed(() =>
    scene.until(`${follower} leads`, async () => {
      const { exitCode, stdout } = await lab.forage(["get", "nodes"], { allowFailure: true });
      return exitCode === 0 && stdout.includes(follower);
    }),
  );
  await scene.allConnected();
  await scene.allReady();
  assert.deepEqual(await scene.allRunning(), before);
  await fleet.onHost(name, `systemctl start ${UNIT}`);
  await untilServing(fleet, 2);
  return seconds;
}

async function untilServing({ lab, scene }: LabFleet, count: number): Promise<void> {
  await scene.until(`${count} coordinators are ready`, async () => {
    const { exitCode, stdout } = await lab.forage(["get", "coordinators", "--output", "json"], {
      allowFailure: true,
    });
    if (exitCode !== 0) return false;
    const all = [JSON.parse(stdout) as Serving | readonly Serving[]].flat() as readonly Serving[];
    return all.length === count && all.every(({ ready }) => ready);
  });
}

interface Serving {
  readonly ready?: boolean;
}

/** Starts a member of etcd with TLS that is alone in its cluster. */
async function startEtcd(fleet: LabFleet): Promise<void> {
  const { lab } = fleet;
  const { name, address } = lab.coordinator;
  const dir = lab.path("etcd");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const authority = await CertificateAuthority.create("etcd", { nowMs: Date.now, randomBytes });
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: [], ipAddresses: [address] });
  const files = { "ca.pem": authority.certPem, "cert.pem": chainPem, "key.pem": keyPem };
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(dir, file), text, { mode: 0o600 });
    await lab.copy(name, join(dir, file), `${ETCD_DIR}/${file}`);
  }
  await lab.copy(name, await ensureEtcd({ report: () => {} }), "/usr/local/bin/etcd");
  await fleet.onHost(name, `chmod 644 ${ETCD_DIR}/ca.pem && chmod 755 /usr/local/bin/etcd`);
  const place = { client: `https://${address}:${ETCD_PORT}`, peer: "http://127.0.0.1:2380" };
  const settings = etcdArguments({ name: "lab", dataDir: "/var/lib/etcd", ...place });
  const tls = [`--cert-file=${ETCD_DIR}/cert.pem`, `--key-file=${ETCD_DIR}/key.pem`];
  const unit = [
    "systemd-run",
    "--quiet",
    "--unit=etcd",
    "--property=Type=notify",
    "--property=Restart=always",
  ];
  await lab.exec(name, [...unit, "/usr/local/bin/etcd", ...settings, ...tls]);
}
