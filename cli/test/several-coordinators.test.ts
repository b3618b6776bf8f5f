import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { Event, WatchEventsResponse } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { aNode } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let first: FakeCoordinator;
let second: FakeCoordinator;
let stranger: FakeCoordinator;
/** A coordinator at whose address nothing listens. */
let down: FakeCoordinator;

before(async () => {
  first = await FakeCoordinator.start();
  second = await first.beside();
  stranger = await FakeCoordinator.start();
  down = await first.beside();
  down.cut();
});
after(() => {
  for (const fake of [first, second, stranger, down]) fake.close();
});
beforeEach(() => {
  for (const fake of [first, second, stranger]) {
    fake.calls.length = 0;
    fake.answers = { listNodes: () => ({ nodes: [aNode()] }) };
  }
});

function forage(line: string, ...servers: readonly FakeCoordinator[]): Promise<Result> {
  const addresses = servers.map(({ address }) => address).join();
  return runCommand(line.split(" "), { env: { ...first.env, FORAGE_SERVER: addresses } });
}

test("uses the next coordinator while the first one is down", async () => {
  const { exitCode, stdout, stderr } = await forage("get nodes -o name", down, second);
  assert.deepEqual([exitCode, stdout], [0, "node/n1\n"], stderr);
  assert.equal(second.requests("listNodes").length, 1);
});

test("sends no token to a coordinator of another authority, and reports it if there is no other coordinator", async () => {
  const found = await forage("get nodes -o name", stranger, second);
  assert.equal(found.exitCode, 0, found.stderr);
  const { stderr, exitCode } = await forage("get nodes", down, stranger);
  assert.notEqual(exitCode, 0);
  const both = `none of ${down.address}, ${stranger.address} can be reached`;
  assert.ok(stderr.includes(`${both}: ${stranger.address} has no certificate from the CA`), stderr);
  assert.deepEqual(stranger.calls, []);
});

test("reopens a broken stream at the same position at any coordinator that answers", async () => {
  const event = Event.fromPartial({ type: "Normal", reason: "Started", message: "has started", count: 1 });
  const positions: bigint[] = [];
  for (const fake of [first, second]) {
    fake.answers.listEvents = () => ({ events: [], sequence: 3n });
    fake.answers.watchEvents = (call) => {
      positions.push(call.request.after ?? 0n);
      // An error without a useful retry ends the command.
      if (positions.length > 1) {
        call.emit("error", grpcError(status.PERMISSION_DENIED, "the test is over"));
        return;
      }
      call.write(WatchEventsResponse.fromPartial({ events: [event], sequence: 7n }));
      call.emit("error", grpcError(status.UNAVAILABLE, "the leader changes"));
    };
  }
  const { stdout, stderr } = await forage("events --watch", first, second);
  assert.match(stderr, /the test is over/);
  assert.match(stdout, /has started/);
  assert.deepEqual(positions, [3n, 7n]);
});

test("lists the coordinators once an hour, even with a token that is refused", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "forage-several-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const config = join(home, "config.yaml");
  writeFileSync(config, `server: [${first.address}, ${second.address}]\n`);
  const { FORAGE_SERVER: _, ...own } = first.env;
  let aheadMs = 0;
  const command = async (): Promise<number> => {
    const env = { ...own, FORAGE_CONFIG: config, XDG_CACHE_HOME: home };
    const { exitCode, stderr } = await runCommand(["get", "nodes"], {
      env,
      nowMs: () => Date.now() + aheadMs,
    });
    assert.equal(exitCode, 0, stderr);
    return first.requests("listCoordinators").length;
  };
  const refuse = (code: status): void => {
    first.answers.listCoordinators = () => {
      throw grpcError(code, "not now");
    };
  };
  refuse(status.PERMISSION_DENIED);
  assert.deepEqual([await command(), await command()], [1, 1]);
  aheadMs += 3_600_001;
  assert.equal(await command(), 2);
  refuse(status.UNAVAILABLE);
  aheadMs += 3_600_001;
  assert.deepEqual([await command(), await command()], [3, 4], "other failures are not remembered");
});

test("examines each coordinator with doctor, and warns of one that is down", async () => {
  Object.assign(second.answers, {
    listCertificates: () => ({ certificates: [], issuer: "" }),
    listPods: () => ({ pods: [], kept: [] }),
  });
  const { stdout, stderr } = await forage("doctor --all", down, second);
  const rows = stdout.split("\n").map((line) => line.replaceAll(/ {2,}/g, "|"));
  const rowOf = (fake: FakeCoordinator) => rows.find((row) => row.startsWith(`coordinator ${fake.address}|`));
  assert.match(rowOf(down) ?? stderr, /\|answers\|warning\|it does not answer/);
  assert.ok(rowOf(second), stderr);
});
