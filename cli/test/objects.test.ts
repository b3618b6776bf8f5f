import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { RealCoordinator } from "./real-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

const coordinator = new RealCoordinator();
const forage = (line: string, stdin?: string): Promise<Result> =>
  runCommand(line.split(" "), { env: coordinator.env, ...(stdin !== undefined && { stdin }) });
const file = (name: string, content: string | Buffer): string => {
  const path = join(coordinator.dir, name);
  writeFileSync(path, content);
  return path;
};

before(() => coordinator.start());
after(() => coordinator.close());

describe("objects", { timeout: 120_000 }, () => {
  test("reads a secret from files, standard input and lines, and shows its values only with --show-values", async () => {
    const key = file("tls.key", "first\nsecond\n");
    const env = file("env", "# comment\n\nUSER=anna\nPASS=a=b c\n");
    const set = await forage(
      `secret set db -n shop --from-file ${key} --from-file pin=- --from-env-file ${env} -l app=db`,
      "1234",
    );
    assert.deepEqual([set.stdout, set.stderr, set.exitCode], ["secret/db created\n", "", 0]);
    const again = `secret set db -n shop --from-file ${key} --from-file pin=- --from-env-file ${env} -l app=db`;
    assert.equal((await forage(again, "1234")).stdout, "secret/db unchanged\n");

    const shown = (await forage("secret get db -n shop")).stdout;
    assert.match(shown, /KEY {6}BYTES\n {2}PASS {9}5\n {2}USER {9}4\n {2}pin {10}4\n {2}tls.key {5}13\n/);
    for (const line of [
      "secret get db -n shop -o json",
      "secret list -A -o yaml",
      "get secrets -A -o json",
      "describe secret/db -n shop",
    ]) {
      const { stdout, exitCode } = await forage(line);
      assert.equal(exitCode, 0, line);
      assert.doesNotMatch(stdout, /anna|YW5uYQ|1234|second/, line);
    }
    assert.match((await forage("secret get db -n shop --show-values")).stdout, /USER {9}4 {2}anna\n/);
    assert.equal((await forage("secret get db -n shop --key tls.key")).stdout, "first\nsecond\n");
    assert.match((await forage("secret get db -n shop --key x")).stderr, /has no key "x"; it has /);
    assert.match((await forage("secret ls -n shop")).stdout, /^NAME {2}KEYS {2}BYTES {2}AGE\ndb {7}4 {5}26 /);
    assert.equal((await forage("secret delete db -n shop")).stdout, "secret/db deleted\n");
    assert.match((await forage("secret get db -n shop")).stderr, /there is no secret/i);
  });

  test("offers no route to pass a secret's value on the command line", async () => {
    assert.match((await forage("secret set db --from-literal a=b")).stderr, /unknown option --from-literal/);
    assert.match((await forage("registry set r s --password x")).stderr, /unknown option --password/);
  });

  test("accepts literals for a config map, and shows its values", async () => {
    const set = await forage("config set app --from-literal mode=fast --from-literal empty=");
    assert.equal(set.stdout, "config/app created\n", set.stderr);
    assert.match((await forage("describe config/app")).stdout, /mode {7}4 {2}fast/);
    assert.deepEqual(JSON.parse((await forage("get configs app -o json")).stdout).name, "app");
    assert.equal((await forage("get configs -o name")).stdout, "config/app\n");
  });

  test("reads the password of a registry from standard input, and never shows it", async () => {
    const set = await forage(
      "registry set hub registry.example:5000 --username anna --password-stdin",
      "pass\n",
    );
    assert.equal(set.stdout, "registry/hub created\n", set.stderr);
    const { stdout } = await forage("registry ls");
    assert.match(stdout, /hub {3}registry.example:5000 {2}anna/);
    assert.doesNotMatch(stdout + (await forage("registry get hub -o json")).stdout, /pass/);
    const missing = await forage("registry set hub s --username u");
    assert.match(missing.stderr, /exactly one of --password-stdin and --password-file/);
  });

  test("creates and lists claims and priority classes", async () => {
    assert.equal((await forage("claim create data --capacity 1Gi")).stdout, "claim/data created\n");
    assert.match((await forage("claim create data --capacity 1Gi")).stderr, /data/);
    assert.match((await forage("claim ls")).stdout, /data {2}1Gi/);
    assert.equal((await forage("claim delete data")).exitCode, 0);
    const set = "priority-class set high --value 1000 --never-preempts --description urgent";
    assert.equal((await forage(set)).stdout, "priority-class/high created\n");
    assert.match((await forage("get priority-classes")).stdout, /high +1000 +never/);
    assert.match((await forage("priority-class ls -n shop")).stderr, /belong to no namespace/);
    assert.match((await forage("priority-class set x --value much")).stderr, /--value is a whole number/);
  });

  test("refuses unreadable or contradictory files before anything is sent", async () => {
    const long = file("long", Buffer.alloc(1024 * 1024 + 1));
    const env = file("bad-env", "A=1\nno value here\n");
    for (const [line, message] of [
      ["secret set s", /there are no values/],
      ["secret set s --from-file -", /the key is missing/],
      ["secret set s --from-file a=- --from-file b=-", /standard input can be read only once/],
      ["secret set s --from-file none", /none does not exist/],
      [`secret set s --from-file ${coordinator.dir}`, /is a directory/],
      [`secret set s --from-file ${long}`, /is longer than 1048576 bytes/],
      [`secret set s --from-file k=${env} --from-file k=${env}`, /the key "k" is given twice/],
      [`secret set s --from-env-file ${env}`, /bad-env:2: not KEY=VALUE$/m],
      ["get secretz", /did you mean "secrets"/],
    ] as const) {
      const { exitCode, stderr } = await forage(line);
      assert.equal(exitCode, 1, line);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /no value here/);
    }
  });
});
