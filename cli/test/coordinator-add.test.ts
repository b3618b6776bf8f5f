import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string) => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
  fake.answers.createCoordinatorToken = () => ({
    token: "FCT1.x",
    expiresAt: { seconds: 1_800_000_000n, nanos: 0 },
    coordinators: ["forage.example:7600"],
  });
});
after(() => fake.close());

test("prints the command for the new coordinator, which reads the token from its standard input", async () => {
  const { stdout, exitCode } = await forage("coordinator add");
  const command =
    "echo FCT1.x | sudo forage-coordinator join forage.example:7600 --config /etc/forage/coordinator.yaml\n";
  assert.deepEqual([exitCode, stdout], [0, command]);
});

test("passes on the lifetime, and accepts another address", async () => {
  fake.calls.length = 0;
  const { stdout } = await forage("coordinator add --ttl 5m --coordinator 192.0.2.9:7600 -o json");
  const answer = JSON.parse(stdout);
  assert.match(answer.command, / join 192\.0\.2\.9:7600 /);
  assert.equal(answer.token, "FCT1.x");
  assert.deepEqual(fake.requests("createCoordinatorToken"), [{ ttlSeconds: 300 }]);
});

test("refuses an address that is more than one word in the command", async () => {
  const { stderr, exitCode } = await runCommand(["coordinator", "add", "--coordinator", "x;reboot"], {
    env: fake.env,
  });
  assert.notEqual(exitCode, 0);
  assert.match(stderr, /--coordinator: "x;reboot" is not HOST:PORT/);
});
