import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { Authority } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

const ENDS = { seconds: BigInt(Date.UTC(2040, 0, 1) / 1000), nanos: 0 };
const OLD = Authority.fromPartial({
  ...{ pin: "old-pin", certificatePem: "OLD\n", notAfter: ENDS, forServers: true },
  nodes: ["n1", "n2", "n3", "n4", "n5", "n6"],
});
const NEW = Authority.fromPartial({
  pin: "new-pin",
  certificatePem: "NEW\n",
  notAfter: ENDS,
  forNodes: true,
});

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {
    listAuthorities: () => ({ authorities: [OLD, NEW] }),
    rollAuthority: () => ({ authorities: [OLD, NEW] }),
    retireAuthority: () => ({ authorities: [{ ...NEW, forServers: true }] }),
  };
});

test("lists what each authority issues, and which nodes depend on the old one", async () => {
  const { stdout } = await forage("ca ls");
  assert.match(stdout, /\nold-pin +coordinators +2040-01-01T00:00:00Z +n1, n2, n3, n4, n5 and 1 more\n/);
  assert.match(stdout, /\nnew-pin +nodes +2040-01-01T00:00:00Z +-\n$/);
  assert.equal(JSON.parse((await forage("ca ls -o json")).stdout)[0].nodes.length, 6);
});

test("prints the roots one after the other", async () => {
  assert.equal((await forage("ca print")).stdout, "OLD\nNEW\n");
});

test("prints the name of the new authority after a roll", async () => {
  const { stdout } = await forage("ca roll");
  assert.match(stdout, /^authority new-pin issues the certificates of nodes; .*forage ca ls\n$/);
});

test("asks before an authority is retired, and shows the coordinator's refusal", async () => {
  const asked = await forage("ca retire");
  assert.match(asked.stderr, /there is no terminal for the confirmation: repeat the command with --yes/);
  assert.equal(fake.requests("retireAuthority").length, 0);
  const { stdout } = await forage("ca retire --yes");
  assert.equal(stdout, "authority new-pin is the cluster's only one\n");
  fake.answers.retireAuthority = () => {
    throw grpcError(status.FAILED_PRECONDITION, "2 nodes depend on the older authority: n1, n2");
  };
  const refused = await forage("ca retire -y");
  assert.equal(refused.exitCode, 1);
  assert.match(refused.stderr, /2 nodes depend on the older authority: n1, n2/);
});
