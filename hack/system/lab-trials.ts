import assert from "node:assert/strict";
import { joinLine } from "../lab-hosts/install-fleet.ts";
import { type LabFleet, LIMIT_MS } from "./lab-fleet.ts";
import { NAMESPACE, timed } from "./lab-scene.ts";

/** Longer trials of the lab's fleet. Afterwards all hosts are Ready again. */

const TOKEN_FILE = "/root/shop.token";
const LOGS = "/var/lib/forage/agent/pods";
const MIB = 2 ** 20;
/** More than two bounded logs hold, and less than the disk. */
const FLOOD_BYTES = 200 * MIB;
const BOUND_BYTES = 60 * MIB;
/** Writes to the standard output of the host's first container. */
const FLOOD = `pid=$(ctr --namespace forage tasks list | awk 'NR == 2 { print $2 }')
yes "$(printf %0100d 0)" | head -c ${FLOOD_BYTES} > "/proc/$pid/fd/1"`;
/** Fails where the agent doesn't see the host's mounts, or the host doesn't see the agent's. */
const SAME_MOUNTS = `pid=$(systemctl show --property MainPID --value forage-agent)
[ "$(readlink "/proc/$pid/ns/mnt")" = "$(readlink /proc/1/ns/mnt)" ]`;

/** Puts keys of the operator into the credential stores of the coordinator and of one host, before anything is installed. */
export async function giveCredentials(fleet: LabFleet, name: string): Promise<void> {
  const store = (file: string): string =>
    `umask 077 && mkdir -p /etc/credstore && cat > /etc/credstore/${file}`;
  await fleet.onHost("coordinator", `head -c 32 /dev/urandom | base64 | (${store("forage-secret-keys")})`);
  await fleet.onHost(name, `head -c 32 /dev/urandom | (${store("forage-journal-key")})`);
}

/** Shows that both daemons use the operator's keys, and that a host without one has a key of its own. */
export async function useCredentials(fleet: LabFleet, name: string, without: string): Promise<void> {
  await fleet.onHost("coordinator", "[ ! -e /var/lib/forage/coordinator/keys/secrets.keys ]");
  await fleet.onHost(name, `[ ! -e /var/lib/forage/agent/journal.key ] && ${SAME_MOUNTS}`);
  await fleet.onHost(without, `[ -e /var/lib/forage/agent/journal.key ] && ${SAME_MOUNTS}`);
}

/** Shows that logs stay bounded on a host while its agent is stopped, and that its containers run on. */
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

/**
 * Shows that these are refused: a token of another namespace, a join token that was used, one for another host, and the identity of a
 * host that was removed; and that the audit log has them. The host joins again at the end.
 * @param used the line with which the host has joined
 */
export async function refuseForeignCredentials(fleet: LabFleet, name: string, used: string): Promise<void> {
  const { lab, scene } = fleet;
  const create = "forage token create --role editor --namespace shop --ttl 1d";
  await fleet.onHost("coordinator", `umask 077 && ${create} > ${TOKEN_FILE}`);
  const crossing = ["get", "pods", "--namespace", NAMESPACE, "--token-file", TOKEN_FILE];
  const foreign = await lab.forage(crossing, { allowFailure: true });
  assert.notEqual(foreign.exitCode, 0);
  assert.match(foreign.stderr, /shop|permission|allowed/i);

  await lab.forage(["node", "remove", name, "--force"]);
  await scene.until("the host's certificate is refused, and the refusal recorded", async () => {
    const caller = `node ${name} (certificate not accepted)`;
    return (await scene.refusals()).some((refusal) => refusal.caller === caller);
  });
  await fleet.onHost(name, "systemctl stop forage-agent && mv /var/lib/forage/agent/identity /root/");
  const host = lab.host(name);
  const other = await joinLine(lab, { ...host, name: "h9" });
  const stolen = other.replace(" --name h9 ", ` --name ${name} `);
  assert.notEqual(stolen, other);
  const options = { allowFailure: true, timeoutMs: LIMIT_MS };
  for (const line of [used, stolen]) {
    const { exitCode, stderr } = await lab.exec(name, ["sh", "-c", line], options);
    assert.notEqual(exitCode, 0);
    assert.match(stderr, /token/);
  }
  await fleet.onHost(name, await joinLine(lab, host));
  await scene.allReady();

  const refusals = await scene.refusals();
  assert.ok(refusals.some(({ caller = "" }) => caller.startsWith("token:")));
  const joins = refusals.filter(({ method = "" }) => method.endsWith("/Join"));
  assert.ok(joins.some(({ message = "" }) => message.includes("has been used")));
  const { stdout } = await lab.forage(["audit", "--verify"]);
  assert.match(stdout, /form one chain/);
}

/** Upgrades all hosts, one after the other, while requests go on: none may fail, and no container may be restarted. */
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
