import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { joinLine } from "../lab-hosts/install-fleet.ts";
import { run } from "../lib/run.ts";
import { spawnProgram } from "../lib/spawn-program.ts";
import type { LabFleet } from "./lab-fleet.ts";
import { NAMESPACE, timed } from "./lab-scene.ts";

/** Trials with stolen, foreign and old credentials. Afterwards all hosts are Ready again. */

const TOKEN_FILE = "/root/shop.token";
const IDENTITY = "/var/lib/forage/agent/identity";
const CA_FILE = "/var/lib/forage/coordinator/ca.crt";
/** The program has nothing to clean up. */
const END_GRACE_MS = 1_000;
const THIEF = join(import.meta.dirname, "thief.ts");

/** Asserts that a token of another namespace can read nothing here. */
export async function refuseCrossingToken(fleet: LabFleet): Promise<void> {
  const { lab, scene } = fleet;
  const create = "forage token create --role editor --namespace shop --ttl 1d";
  await fleet.onHost("coordinator", `umask 077 && ${create} > ${TOKEN_FILE}`);
  const crossing = ["get", "pods", "--namespace", NAMESPACE, "--token-file", TOKEN_FILE];
  const foreign = await lab.forage(crossing, { allowFailure: true });
  assert.notEqual(foreign.exitCode, 0);
  assert.match(foreign.stderr, /shop|permission|allowed/i);
  assert.ok((await scene.refusals()).some(({ caller = "" }) => caller.startsWith("token:")));
}

/** Asserts that the identity of one host can't report about a pod of another one. */
export async function refuseForeignReport(fleet: LabFleet, thief: string, uid: string): Promise<void> {
  const { scene } = fleet;
  await fleet.onHost(thief, "systemctl stop forage-agent");
  const program = startThief(fleet, ["report", await stealIdentity(fleet, thief), coordinatorAt(fleet), uid]);
  try {
    await scene.until("the refused report is recorded", async () => {
      assert.doesNotMatch(program.readLog(), /Error/);
      return (await scene.refusals()).some(
        ({ method = "", caller, message = "" }) =>
          method.endsWith("/Connect") && caller === `node ${thief}` && /is bound to node/.test(message),
      );
    });
  } finally {
    await program.end(END_GRACE_MS);
  }
  await fleet.onHost(thief, "systemctl start forage-agent");
  await scene.allConnected();
  await scene.allReady();
}

/** Asserts that a join that is repeated after its node has connected is refused. */
export async function refuseReplayedJoin(fleet: LabFleet): Promise<void> {
  const { lab, scene } = fleet;
  const [line = ""] = /FLT1\.\S+/.exec(await joinLine(lab, { ...lab.host("h3"), name: "replayed" })) ?? [];
  const caFile = lab.path("stolen", "ca.pem");
  const program = startThief(fleet, ["replay", caFile, coordinatorAt(fleet), line, "replayed"]);
  await program.exited;
  assert.match(program.readLog(), /has been used by this node/);
  await lab.forage(["node", "remove", "replayed", "--force"]);
  await scene.allReady();
}

/**
 * Shows that the identity of a removed host, a join token that was used and one for another host are refused, that the removal ends
 * a command on the host, and that the audit log has all of it. The host joins again at the end.
 * @param used the line with which the host has joined
 * @param pod a pod on the host
 */
export async function refuseRemovedHost(
  fleet: LabFleet,
  name: string,
  { used, pod }: { readonly used: string; readonly pod: string },
): Promise<number> {
  const { lab, scene } = fleet;
  const command = ["exec", "--namespace", NAMESPACE, pod, "--", "sh", "-c", "echo started; exec sleep 600"];
  let early: string | undefined;
  const live = lab.forage(command, { allowFailure: true, timeoutMs: fleet.limitMs });
  void live.then(({ stdout, stderr }) => {
    early = `${stdout}${stderr}`;
  });
  await scene.until("the command runs", async () => {
    assert.equal(early, undefined);
    return (await fleet.onHost(name, "ps -eo args")).includes("sleep 600");
  });
  const before = await scene.running(name);
  await lab.forage(["node", "remove", name, "--force"]);
  const { value: ended, seconds } = await timed(() => live);
  assert.notEqual(ended.exitCode, 0);
  // The command has not ended with its container.
  assert.deepEqual(await scene.running(name), before);
  await scene.until("the host's certificate is refused, and the refusal recorded", async () => {
    const caller = `node ${name} (certificate not accepted)`;
    return (await scene.refusals()).some((refusal) => refusal.caller === caller);
  });
  await fleet.onHost(name, `systemctl stop forage-agent && mv ${IDENTITY} /root/`);
  const host = lab.host(name);
  const other = await joinLine(lab, { ...host, name: "h9" });
  const stolen = other.replace(" --name h9 ", ` --name ${name} `);
  assert.notEqual(stolen, other);
  const options = { allowFailure: true, timeoutMs: fleet.limitMs };
  for (const line of [used, stolen]) {
    const { exitCode, stderr } = await lab.exec(name, ["sh", "-c", line], options);
    assert.notEqual(exitCode, 0);
    assert.match(stderr, /token/);
  }
  await fleet.onHost(name, await joinLine(lab, host));
  await scene.allReady();
  const joins = (await scene.refusals()).filter(({ method = "" }) => method.endsWith("/Join"));
  for (const reason of ["has been used", "is for a node with another name"])
    assert.ok(
      joins.some(({ message = "" }) => message.includes(reason)),
      reason,
    );
  const { stdout } = await lab.forage(["audit", "--verify"]);
  assert.match(stdout, /form one chain/);
  return seconds;
}

/** Copies the host's identity. Returns the directory of the copy, which is removed with the lab. */
async function stealIdentity(fleet: LabFleet, name: string): Promise<string> {
  const dir = fleet.lab.path("stolen");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  for (const file of ["node.pem", "ca.pem"]) {
    const text = await fleet.onHost(name, `cat ${IDENTITY}/${file}`);
    await run("sh", ["-c", 'umask 077 && cat > "$0"', join(dir, file)], { input: text });
  }
  return dir;
}

function startThief({ lab }: LabFleet, args: readonly string[]): ReturnType<typeof spawnProgram> {
  const [file = "", ...rest] = lab.besideCommand([process.execPath, THIEF, ...args]);
  return spawnProgram(file, rest, { logPath: lab.path("thief.log") });
}

function coordinatorAt({ lab }: LabFleet): string {
  return `${lab.coordinator.address}:7600`;
}

/** Replaces the certificate authority while everything runs: no container may be restarted. */
export async function replaceAuthority(fleet: LabFleet, pod: string): Promise<void> {
  const { lab, scene } = fleet;
  const before = await scene.allRunning();
  const authorities = async (): Promise<string> => (await lab.forage(["ca", "ls"])).stdout;
  const [first = ""] = /[\w-]{43}/.exec(await authorities()) ?? [];
  await lab.forage(["ca", "roll"]);
  await scene.until("every node has a certificate of the new authority", async () => {
    const { exitCode } = await lab.forage(["ca", "retire", "--yes"], { allowFailure: true });
    return exitCode === 0;
  });
  assert.ok(!(await authorities()).includes(first));
  await scene.allConnected();
  await scene.allReady();
  const greeting = await lab.forage(["exec", "--namespace", NAMESPACE, pod, "--", "echo", "hello"]);
  assert.equal(greeting.stdout.trim(), "hello");
  assert.deepEqual(await scene.allRunning(), before);
  await fleet.onHost("coordinator", `[ -s ${CA_FILE} ]`);
}
