import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import manifest from "../package.json" with { type: "json" };
import { aNode, aPod } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (argv: readonly string[], env: Record<string, string> = {}): Promise<Result> =>
  runCommand(argv, { env: { ...fake.env, ...env } });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  const lastSeenAt = () => ({ seconds: BigInt(Math.floor(Date.now() / 1000)), nanos: 0 });
  fake.answers = {
    listNodes: () => ({
      nodes: [aNode({ agentVersion: manifest.version, lastSeenAt: lastSeenAt() })],
    }),
    listCertificates: () => ({ certificates: [], issuer: "" }),
    listPods: () => ({ pods: [aPod()], kept: [] }),
    examineNodes: (call) => {
      const findings = [{ check: "disk", result: "ok", message: "50 GiB are left", remedy: "" }];
      const clock = { clockAheadMs: 0n, clockUncertaintyMs: 1 };
      call.write({ node: "n1", problem: "", ...clock, findings, peers: [] });
      call.end();
    },
  };
});

describe("forage doctor", () => {
  test("lists only problems, and every check with --all", async () => {
    const { exitCode, stdout, stderr } = await forage(["doctor"]);
    assert.deepEqual([exitCode, stdout], [0, ""], stderr);
    assert.match(stderr, /^nothing is wrong: \d+ checks\n$/);
    const all = await forage(["doctor", "--all", "-o", "name"]);
    assert.deepEqual(all.stdout.split("\n").slice(0, -1), [
      "client/settings",
      `authority of ${fake.address}/certificate`,
      "coordinator/answers",
      "client/clock",
      "nodes/versions",
      "node/n1/ready",
      "coordinator/certificate",
      "pods/running",
      "node/n1/clock-difference",
      "node/n1/disk",
    ]);
    const without = await forage(["doctor", "--all", "--no-hosts", "-o", "name"]);
    assert.doesNotMatch(without.stdout, /disk/);
  });

  test("reports hosts as unknown if the token or the coordinator can't examine them", async () => {
    for (const code of [status.PERMISSION_DENIED, status.UNIMPLEMENTED, status.RESOURCE_EXHAUSTED]) {
      fake.answers.examineNodes = (call) => call.emit("error", grpcError(code, "no"));
      const { exitCode, stdout } = await forage(["doctor"]);
      assert.deepEqual([exitCode, stdout.match(/hosts +examined +unknown/g)?.length], [0, 1], stdout);
    }
  });

  test("prints the remedy of a problem, and exits with 1", async () => {
    const lost = aNode({ name: "n2", ready: false, unreachable: true, message: "no heartbeat for 9 s" });
    fake.answers.listNodes = () => ({ nodes: [lost] });
    const { exitCode, stdout } = await forage(["doctor"]);
    assert.equal(exitCode, 1);
    assert.match(stdout, /node\/n2 +ready +problem +no heartbeat for 9 s.* systemctl status forage-agent/);
  });

  test("reports data that the token may not read as unknown", async () => {
    const denied = () => {
      throw grpcError(status.PERMISSION_DENIED, "needs the role admin");
    };
    fake.answers = { listNodes: denied, listCertificates: denied, listPods: () => ({ pods: [], kept: [] }) };
    const { exitCode, stdout } = await forage(["doctor"]);
    assert.equal(exitCode, 0);
    assert.match(stdout, /coordinator +answers +unknown +not allowed: needs the role admin/);
  });

  test("reports an unreachable coordinator and invalid settings as findings", async () => {
    const away = await forage(["doctor"], { FORAGE_SERVER: "127.0.0.1:1" });
    assert.equal(away.exitCode, 1);
    assert.match(away.stdout, /coordinator +answers +problem +nothing listens at 127\.0\.0\.1:1/);
    const noToken = await forage(["doctor"], { FORAGE_TOKEN_FILE: "/nonexistent" });
    assert.equal(noToken.exitCode, 1);
    assert.match(noToken.stdout, /client +settings +problem +the token file \/nonexistent does not exist/);
    const file = join(fake.dir, "other.crt");
    writeFileSync(file, "no certificate");
    assert.match(
      (await forage(["doctor"], { FORAGE_CA_FILE: file })).stdout,
      /client +authority +problem +the CA file .* holds no certificate/,
    );
    assert.doesNotMatch(away.stdout + noToken.stdout, new RegExp(fake.token));
  });
});
