import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Coordinator } from "@forage/proto/forage/operator/v1/operator";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string) => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
  const coordinators = [
    { name: "c1", addresses: ["10.0.0.1:7600"], leads: true, ready: true },
    { name: "c2", addresses: ["10.0.0.2:7600"], ready: true, revisionsBehind: 2n },
    { name: "c3", addresses: ["10.0.0.3:7600"], message: "it has not reported for 40 s" },
  ].map((it) => Coordinator.fromPartial(it));
  fake.answers.listCoordinators = () => ({ coordinators });
});
after(() => fake.close());

test("shows which coordinator leads, and how many revisions the others are behind", async () => {
  const { stdout, exitCode } = await forage("get coordinators");
  assert.equal(exitCode, 0);
  const rows = stdout.split("\n").map((line) => line.replaceAll(/ {2,}/g, "|"));
  assert.match(rows[0] ?? "", /^COORDINATOR\|ADDRESS\|ROLE\|STATUS\|LEADS FOR\|BEHIND\|SEEN\|WHY/);
  assert.match(rows[1] ?? "", /^c1\|10\.0\.0\.1:7600\|Leader\|Ready/);
  assert.match(rows[2] ?? "", /^c2\|10\.0\.0\.2:7600\|Follower\|Ready\|.*2/);
  assert.match(rows[3] ?? "", /^c3\|.*\|Follower\|NotReady\|.*it has not reported for 40 s/);
  assert.equal((await forage("coordinator ls")).stdout, stdout);
});

test("shows one coordinator by its name, also as JSON, and refuses label selectors", async () => {
  const { stdout } = await forage("get coordinator c2 -o json");
  assert.match(stdout, /"name": ?"c2"/);
  assert.doesNotMatch(stdout, /"c1"/);
  const labelled = await forage("get coordinators -l a=b");
  assert.match(labelled.stderr, /coordinators can't be chosen by label/);
});
