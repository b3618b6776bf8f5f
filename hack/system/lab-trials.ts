import assert from "node:assert/strict";
import { joinCommand } from "../lab-hosts/install-fleet.ts";
import type { Lab } from "../lab-hosts/lab.ts";
import { type LabScene, NAMESPACE, timed } from "./lab-scene.ts";

/** Longer trials of the lab's fleet. Afterwards all hosts are Ready again. */

export interface Trial {
  readonly lab: Lab;
  readonly scene: LabScene;
  readonly timeoutMs: number;
}

const TOKEN_FILE = "/root/shop.token";

/**
 * Shows that these are refused: a token of another namespace, a join token that was used, one for another host, and the identity of a
 * host that was removed. The host joins again at the end.
 * @param used the command with which the host has joined
 */
export async function refuseForeignCredentials(
  { lab, scene, timeoutMs }: Trial,
  name: string,
  used: readonly string[],
): Promise<void> {
  const run = (host: string, line: string) => lab.exec(host, ["sh", "-c", line], { timeoutMs });
  const create = "forage token create --role editor --namespace shop --ttl 1d";
  await run("coordinator", `umask 077 && ${create} > ${TOKEN_FILE}`);
  const crossing = ["get", "pods", "--namespace", NAMESPACE, "--token-file", TOKEN_FILE];
  const foreign = await lab.forage(crossing, { allowFailure: true });
  assert.notEqual(foreign.exitCode, 0);
  assert.match(foreign.stderr, /shop|permission|allowed/i);

  await lab.forage(["node", "remove", name, "--force"]);
  await scene.until("the coordinator has ended the host's session", async () => {
    return !(await scene.nodes()).some((node) => node.name === name);
  });
  await run(name, "systemctl stop forage-agent && mv /var/lib/forage/agent/identity /root/");
  const host = lab.host(name);
  const other = await joinCommand(lab, { ...host, name: "h9" });
  const stolen = other.map((word) => (word === "h9" ? name : word));
  for (const command of [used, stolen]) {
    const { exitCode, stderr } = await lab.exec(name, command, { allowFailure: true, timeoutMs });
    assert.notEqual(exitCode, 0);
    assert.match(stderr, /token/);
  }
  await lab.exec(name, await joinCommand(lab, host), { timeoutMs });
  await scene.allReady();
}

/** Upgrades all hosts, one after the other, while requests go on: none may fail, and no container may be restarted. */
export async function upgradeUnderLoad(
  { lab, scene, timeoutMs }: Trial,
  { version, port }: { readonly version: string; readonly port: number },
): Promise<string> {
  const before = await scene.allRunning();
  const load = await scene.startLoad(lab.host("h1").address, port);
  try {
    const { seconds } = await timed(async () => {
      for (const { name, runsAgent } of lab.hosts) {
        const program = runsAgent ? "forage-agent" : "forage-coordinator";
        const install = `apt-get -qq update && apt-get -qq --yes install ${program}`;
        await lab.exec(name, ["sh", "-c", install], { timeoutMs });
        const { stdout } = await lab.exec(name, ["dpkg-query", "--show", program]);
        assert.ok(stdout.includes(version), stdout);
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
