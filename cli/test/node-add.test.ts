import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string) => runCommand(line.split(" "), { env: fake.env });

const response = (coordinators: string[], allCoordinators: string[] = []) => ({
  ...{ token: "FLT1.x", expiresAt: { seconds: 1_800_000_000n, nanos: 0 }, coordinators, allCoordinators },
});

before(async () => {
  fake = await FakeCoordinator.start();
  fake.answers.createJoinToken = () => response(["forage.example:7600", "192.0.2.5:7600"]);
});
after(() => fake.close());

test("prints the command for the new host, with the address that the coordinator prefers", async () => {
  const { stdout, exitCode } = await forage("node add");
  assert.deepEqual(
    [exitCode, stdout],
    [0, "echo FLT1.x | sudo forage-agent join --coordinator forage.example:7600\n"],
  );
});

test("prints one address of each coordinator, or all that the operator gives", async () => {
  const before = fake.answers.createJoinToken;
  assert.ok(before);
  const all = Array.from({ length: 12 }, (_, at) => `c${at}.example:7600`);
  fake.answers.createJoinToken = () => response(all.slice(0, 1), all);
  const flags = (addresses: readonly string[]): string =>
    addresses.map((it) => ` --coordinator ${it}`).join("");
  try {
    const known = await forage("node add");
    assert.equal(known.stdout, `echo FLT1.x | sudo forage-agent join${flags(all.slice(0, 9))}\n`);
    const given = ["192.0.2.9:7600", "[2001:db8::9]:7600"];
    const { stdout } = await forage(`node add${flags(given)}`);
    assert.equal(stdout, `echo FLT1.x | sudo forage-agent join${flags(given)}\n`);
    const many = await forage(`node add${flags(all)}`);
    assert.notEqual(many.exitCode, 0);
    assert.match(many.stderr, /--coordinator: 12 addresses are given, and at most 9 are used/);
  } finally {
    fake.answers.createJoinToken = before;
  }
});

test("binds the token to the name, and sets labels and taints of the node", async () => {
  fake.calls.length = 0;
  const line =
    "node add edge-2 --label zone=a --taint new=1:NoSchedule --ttl 5m --coordinator 192.0.2.9:7600";
  const { stdout } = await forage(line);
  assert.equal(stdout, "echo FLT1.x | sudo forage-agent join --name edge-2 --coordinator 192.0.2.9:7600\n");
  assert.deepEqual(fake.requests("createJoinToken"), [
    {
      ...{ ttlSeconds: 300, nodeName: "edge-2", reusable: false, labels: { zone: "a" } },
      taints: [{ key: "new", value: "1", effect: "NoSchedule" }],
    },
  ]);
});

test("prints the parts as JSON", async () => {
  const { stdout } = await forage("node add -o json");
  const answer = JSON.parse(stdout);
  assert.equal(answer.token, "FLT1.x");
  assert.match(answer.command, /^echo FLT1\.x \| sudo forage-agent join /);
});

test("refuses an address that is more than one word in the command", async () => {
  const { stderr, exitCode } = await runCommand(["node", "add", "--coordinator", "x;reboot"], {
    env: fake.env,
  });
  assert.notEqual(exitCode, 0);
  assert.match(stderr, /--coordinator: "x;reboot" is not HOST:PORT/);
});
