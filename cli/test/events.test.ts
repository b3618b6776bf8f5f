import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Event } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { ago, aPod } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
const forage = (line: string): Promise<Result> => runCommand(line.split(" "), { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {};
});

describe("events", () => {
  test("prints events as a table, oldest first", async () => {
    fake.answers.listEvents = () => ({
      events: [
        anEvent(),
        anEvent({ type: "Warning", reason: "Unschedulable", message: "waits\nfor a node", count: 3 }),
      ],
      sequence: 2n,
    });
    const { stdout, exitCode } = await forage("events -n shop");
    assert.deepEqual(stdout.split("\n"), [
      "LAST  TYPE     REASON         ABOUT      COUNT  MESSAGE",
      "2h2m  Normal   Started        pod/web-1      1  container main has started",
      "2h2m  Warning  Unschedulable  pod/web-1      3  waits\\nfor a node",
      "",
    ]);
    assert.equal(exitCode, 0);
    assert.deepEqual(fake.requests("listEvents"), [
      { namespace: "shop", filter: { ...noFilter }, after: 0n, limit: 500 },
    ]);
  });

  test("sends filters to the coordinator", async () => {
    fake.answers.listEvents = () => ({ events: [], sequence: 0n });
    const line = "events --for svc/web --type Warning --reason RolledBack --since 10m --limit 7";
    const { stderr } = await forage(line);
    assert.equal(stderr, 'no events in namespace "default"\n');
    const [request] = fake.requests("listEvents") as { filter: { since: { seconds: bigint } } }[];
    const { since, ...filter } = request?.filter ?? { since: { seconds: 0n } };
    assert.deepEqual(filter, { kind: "service", name: "web", type: "Warning", reason: "RolledBack" });
    const ageSeconds = Date.now() / 1000 - Number(since.seconds);
    assert.ok(ageSeconds >= 600 && ageSeconds < 720, `${ageSeconds} s ago`);
  });

  test("requests events of nodes without a namespace, and all events with -A", async () => {
    fake.answers.listEvents = () => ({ events: [anEvent({ namespace: "shop" })], sequence: 0n });
    await forage("events --for node/n1 -n shop");
    await forage("events --for certificate/*.example.org -n shop");
    const { stdout } = await forage("events -A");
    assert.match(stdout, /^LAST {2}NAMESPACE .*\n2h2m {2}shop /);
    const namespaces = fake
      .requests("listEvents")
      .map((request) => (request as { namespace: string }).namespace);
    assert.deepEqual(namespaces, ["", "", ""]);
  });

  test("refuses contradictory flags before anything is sent", async () => {
    for (const line of ["events --for web", "events --limit 0", "events --since soon", "events -A -n shop"]) {
      const { exitCode, stderr } = await forage(line);
      assert.equal(exitCode, 1, line);
      assert.notEqual(stderr, "", line);
    }
    assert.deepEqual(fake.calls, []);
  });

  test("continues watching at the same position after a broken stream, and reports missing events", async () => {
    const interrupt = new AbortController();
    fake.answers.listEvents = () => ({ events: [anEvent()], sequence: 4n });
    fake.answers.watchEvents = (call) => {
      if (call.request.after === 4n) {
        call.write({ events: [anEvent({ reason: "Ready", message: "ready" })], sequence: 9n, gap: false });
        call.emit("error", grpcError(status.UNAVAILABLE, "gone"));
        return;
      }
      assert.equal(call.request.after, 9n);
      call.write({ events: [anEvent({ reason: "Stopped", message: "over" })], sequence: 12n, gap: true });
    };
    const { stdout, stderr, exitCode } = await runCommand(["events", "--watch", "-o", "json"], {
      env: fake.env,
      signal: interrupt.signal,
      onOutput: (text) => {
        if (text.includes("Stopped")) interrupt.abort();
      },
    });
    const reasons = stdout
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { reason: string }).reason);
    assert.deepEqual(reasons, ["Started", "Ready", "Stopped"]);
    assert.match(stderr, /some events are missing/);
    assert.equal(exitCode, 130);
  });
});

describe("describe", () => {
  const answer = (): void => {
    fake.answers.listPods = () => ({ kept: [], pods: [aPod()] });
    fake.answers.listResources = () => ({ resources: [] });
  };

  test("shows the last events in a description", async () => {
    answer();
    fake.answers.listEvents = () => ({ events: [anEvent()], sequence: 1n });
    const { stdout } = await forage("describe pod/web-1");
    assert.match(stdout, /\nEvents:\n {2}LAST .*\n {2}2h2m {2}Normal {2}Started /);
    assert.deepEqual(fake.requests("listEvents"), [
      { namespace: "default", filter: { ...noFilter, kind: "pod", name: "web-1" }, after: 0n, limit: 10 },
    ]);
  });

  test("omits events that the token may not read", async () => {
    answer();
    fake.answers.listEvents = () => {
      throw grpcError(status.PERMISSION_DENIED, "no");
    };
    const { stdout, exitCode } = await forage("describe pod/web-1");
    assert.equal(exitCode, 0);
    assert.doesNotMatch(stdout, /Events:/);
  });
});

const noFilter = { kind: "", name: "", type: "", reason: "", since: undefined };

function anEvent(fields: Partial<Event> = {}): Event {
  return Event.fromPartial({
    namespace: "default",
    kind: "pod",
    name: "web-1",
    type: "Normal",
    reason: "Started",
    message: "container main has started",
    firstAt: ago(7_320),
    lastAt: ago(7_320),
    count: 1,
    ...fields,
  } as Parameters<typeof Event.fromPartial>[0]);
}
