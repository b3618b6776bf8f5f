import assert from "node:assert/strict";
import { IMAGE, type LabFleet } from "./lab-fleet.ts";
import { NAMESPACE } from "./lab-scene.ts";

/** The commands of an operator on the first host of a fleet, which runs the coordinator and, for a while, an agent. */

const FIRST = "first";
/** Each command is one line of `docs/how-to/install-packages.md`, with the packages from a repository. */
const COMMANDS = {
  install: "sudo apt-get -qq --yes install forage-coordinator forage-agent",
  join: "forage node add coordinator | sh",
  run: `forage run ${IMAGE} --name ${FIRST} --namespace ${NAMESPACE} -- sleep 3600`,
};
const CANARY = "canary-of-the-lab";

/** Runs the three commands on the coordinator's host. Returns once the container runs. */
export async function startOnOneHost(fleet: LabFleet): Promise<void> {
  await fleet.onHost("coordinator", COMMANDS.install);
  await fleet.onHost("coordinator", COMMANDS.join);
  // The image is loaded because there is no registry.
  await fleet.loadImage("coordinator");
  await fleet.onHost("coordinator", COMMANDS.run);
  assert.equal((await fleet.scene.running("coordinator")).length, 1);
}

/**
 * Drains the agent of the coordinator's host, and removes it from the fleet. The first container moves to another host.
 */
export async function emptyFirstHost(fleet: LabFleet): Promise<void> {
  const { lab, scene } = fleet;
  await lab.forage(["node", "drain", "coordinator", "--wait", ...scene.timeout], {
    timeoutMs: fleet.limitMs,
  });
  assert.deepEqual(await scene.running("coordinator"), []);
  const [moved] = await scene.serving(FIRST, 1);
  assert.equal(moved?.node, "h1");
  await fleet.onHost("coordinator", "systemctl stop forage-agent");
  await lab.forage(["node", "remove", "coordinator", "--force"]);
  const answer = "echo forage-agent forage-agent/remove-state boolean true | debconf-set-selections";
  await fleet.onHost("coordinator", `${answer} && apt-get -qq --yes purge forage-agent`);
  await fleet.onHost("coordinator", "[ ! -e /var/lib/forage/agent ] && [ ! -e /etc/forage/agent.yaml ]");
  await lab.forage(["delete", `container_service/${FIRST}`, "--namespace", NAMESPACE]);
}

/** Asserts that the examination of a host reports no failure, and that support bundles contain no secret. */
export async function examineHost(fleet: LabFleet, name: string): Promise<void> {
  const { lab } = fleet;
  const text = await fleet.onHost(name, "forage-agent check --output json || true");
  assert.equal((JSON.parse(text) as { readonly ok: boolean }).ok, true, text);
  const set = ["secret", "set", "canary", "--namespace", NAMESPACE, "--from-file", "password=-"];
  await lab.forage(set, { input: CANARY });
  const search = (archive: string): string =>
    `mkdir /tmp/bundle && tar xzf ${archive} -C /tmp/bundle && ls /tmp/bundle | grep -q . &&
     ! grep -r -e ${CANARY} -e "$(printf ${CANARY} | base64)" /tmp/bundle && rm -r /tmp/bundle ${archive}`;
  await lab.forage(["support-bundle", "/tmp/fleet.tar.gz"]);
  await fleet.onHost("coordinator", search("/tmp/fleet.tar.gz"));
  await fleet.onHost(name, `forage-agent support-bundle /tmp/host.tar.gz && ${search("/tmp/host.tar.gz")}`);
}
