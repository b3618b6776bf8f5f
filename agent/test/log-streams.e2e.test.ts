import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LogOptions } from "@forage/proto/forage/agent/v1/agent";
import { type Container, ContainerSecurityContext, PodConfig } from "@forage/proto/forest/v1/forage";
import { bundlePrograms } from "../../hack/bundling/bundle-programs.ts";
import type { Program } from "../../hack/lib/spawn-program.ts";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { AgentUnderTest } from "./agent-under-test.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const LIMIT = { timeout: 120_000 };

let host: TestHost;
let coordinator: FakeCoordinator;
let agent: AgentUnderTest;
let reader: Program;
let readers = 0;

before(async () => {
  host = await startTestHost();
  coordinator = await FakeCoordinator.start();
  agent = await AgentUnderTest.prepare(host, coordinator, { restart: { backOffBaseSeconds: 1 } });
  await bundlePrograms({
    root: ROOT,
    outDir: join(host.dir, "reader"),
    programs: { logs: "agent/src/log-reader/main.ts" },
  });
  await startReader();
  await agent.start();
}, LIMIT);
after(async () => {
  await agent?.stop();
  await coordinator?.close();
  await host?.close();
}, LIMIT);

async function startReader(): Promise<void> {
  readers += 1;
  reader = host.spawn(`reader-${readers}`, process.execPath, [
    join(host.dir, "reader", "logs.mjs"),
    ...["--dir", join(agent.dataDir, "log-streams")],
  ]);
  await agent.until("the reader runs", () => reader.readLog().includes("log-reader-started"));
}

async function killReader(): Promise<void> {
  reader.kill("SIGKILL");
  await reader.exited;
}

function aPod(uid: string, script: string, container: Partial<Container> = {}, streams = "separate") {
  return anAssignment({
    uid,
    command: ["sh", "-c", script],
    container,
    template: {
      podConfig: PodConfig.fromPartial({
        terminationGracePeriodSeconds: 1,
        restartPolicy: "Always",
        annotations: { "forage.dev/log-streams": streams },
      }),
    },
  });
}

async function logs(podUid: string, options: Partial<LogOptions> = {}): Promise<string> {
  const value = LogOptions.fromPartial(options);
  const session = coordinator.openSession({ podUid, container: "", kind: { $case: "logs", value } });
  const { error } = await session.ended;
  return error === "" ? session.stdout : `error: ${error}`;
}

/** Lets a container continue that waits for `/tmp/<name>`. */
async function letGo(podUid: string, name: string): Promise<void> {
  const pid = (await agent.containers()).find((it) => it.running && it.name.includes(podUid))?.pid;
  writeFileSync(`/proc/${pid}/root/tmp/${name}`, "");
}

const wait = (name: string) => `while [ ! -e /tmp/${name} ]; do sleep 0.1; done`;
const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join("");

test(
  "reads both streams separately and together, with times, since, tail and the previous run",
  LIMIT,
  async () => {
    const uid = "talks";
    const script = [
      "echo one",
      wait("a"),
      "echo two >&2; echo three > /dev/stderr",
      wait("b"),
      'printf "fo"; sleep 0.3; echo ur',
      wait("c"),
      "echo five > /dev/stdout; echo six >&2; exit 3",
    ].join("; ");
    // A user other than root, who must own the pipe to open /dev/stderr.
    const securityContext = ContainerSecurityContext.fromPartial({ runAsUser: 1000n, runAsGroup: 1000n });
    coordinator.assign(aPod(uid, script, { securityContext }));
    await agent.untilReady(uid);
    await agent.until("one", async () => (await logs(uid)) === "one\n");
    await letGo(uid, "a");
    await agent.until("three", async () => (await logs(uid)) === "one\ntwo\nthree\n");
    await letGo(uid, "b");
    await agent.until("four", async () => (await logs(uid)) === "one\ntwo\nthree\nfour\n");
    assert.equal(await logs(uid, { stream: "stdout" }), "one\nfour\n");
    assert.equal(await logs(uid, { stream: "stderr" }), "two\nthree\n");
    assert.equal(await logs(uid, { tailLines: 2 }), "three\nfour\n");
    assert.equal(await logs(uid, { stream: "stderr", tailLines: 1 }), "three\n");
    const stamped = (await logs(uid, { timestamps: true })).trimEnd().split("\n");
    const times = stamped.map((line) => Date.parse(line.split(" ")[0] ?? ""));
    assert.deepEqual(
      stamped.map((line) => line.split(" ")[1]),
      ["one", "two", "three", "four"],
    );
    assert.deepEqual(
      [...times].sort((a, b) => a - b),
      times,
    );
    const sinceMs = times[3] ?? 0;
    const since = { seconds: BigInt(Math.floor(sinceMs / 1_000)), nanos: (sinceMs % 1_000) * 1_000_000 };
    assert.equal(await logs(uid, { since }), "four\n");
    assert.equal(await logs(uid, { since, stream: "stderr" }), "");

    await letGo(uid, "c");
    const last = () => coordinator.statuses.get(uid)?.containers[0]?.lastTermination;
    await agent.until("its end is reported", () => last() !== undefined);
    assert.deepEqual((last()?.message ?? "").split("\n").sort(), [
      "five",
      "four",
      "one",
      "six",
      "three",
      "two",
    ]);
    await agent.until("it runs again", async () => (await logs(uid)) === "one\n");
    assert.equal(await logs(uid, { previous: true, stream: "stderr" }), "two\nthree\nsix\n");
    assert.equal(await logs(uid, { previous: true, stream: "stdout" }), "one\nfour\nfive\n");

    coordinator.stop(uid);
    await agent.until("removed", () => !coordinator.statuses.has(uid));
    assert.equal(existsSync(join(agent.dataDir, "pods", uid)), false);
    assert.deepEqual(readdirSync(join(agent.dataDir, "log-streams")), ["reader.sock"]);
  },
);

test("killing the reader and the agent loses no line and blocks no container", LIMIT, async () => {
  const uid = "writes";
  const script = `seq 1 1000; ${wait("a")}; seq 1001 2000; seq 1 100 >&2; touch /tmp/away; ${wait("b")}; seq 2001 3000; ${wait("c")}`;
  coordinator.assign(aPod(uid, script));
  await agent.untilReady(uid);
  await agent.until("the first thousand", async () => (await logs(uid)) === lines(1, 1000));
  const ids = await agent.runningIds();
  await killReader();
  await agent.kill();
  const { pid } = (await agent.containers()).find((it) => it.running) ?? { pid: 0 };
  await letGo(uid, "a");
  await agent.until("it has written", () => existsSync(`/proc/${pid}/root/tmp/away`));
  coordinator.statuses.clear();
  await startReader();
  await agent.start();
  await agent.untilReady(uid);
  await agent.until("all", async () => (await logs(uid, { stream: "stdout" })) === lines(1, 2000));
  assert.equal(await logs(uid, { stream: "stderr" }), lines(1, 100));
  assert.deepEqual(await agent.runningIds(), ids, "the container goes on");
  // Without the agent, the reader continues to read.
  await agent.kill();
  await letGo(uid, "b");
  const log = join(agent.dataDir, "pods", uid, "main", "1.log");
  await agent.until("3000", () => readFileSync(log, "utf8").endsWith(" stdout F 3000\n"));
  coordinator.statuses.clear();
  await agent.start();
  await agent.untilReady(uid);
  assert.equal(await logs(uid, { stream: "stdout" }), lines(1, 3000));
  coordinator.stop(uid);
  await agent.until("removed", () => !coordinator.statuses.has(uid));
});

test(
  "a follower gets all lines of a stream while the log is rotated, and the log stays small",
  LIMIT,
  async () => {
    const uid = "floods";
    const count = 900_000;
    // Writes 58 MB, and an occasional line of the other stream.
    const awk = `BEGIN { for (i = 0; i < 100000; i++) print i + 100000 * part " ${"y".repeat(58)}" }`;
    const script = `i=0; while [ $i -lt 9 ]; do while [ ! -e /tmp/$i ]; do sleep 0.1; done; awk -v part=$i '${awk}'; echo part $i >&2; i=$((i+1)); done; echo the end; ${wait("b")}`;
    coordinator.assign(aPod(uid, script));
    await agent.untilReady(uid);
    const value = LogOptions.fromPartial({ follow: true, stream: "stderr" });
    const session = coordinator.openSession({ podUid: uid, container: "", kind: { $case: "logs", value } });
    // A follower that is slower than its container misses lines that are rotated away.
    for (let part = 0; part < 9; part += 1) {
      await letGo(uid, String(part));
      await agent.until(`part ${part}`, () => session.stdout.endsWith(`part ${part}\n`));
    }
    await agent.until(
      "the end",
      async () => (await logs(uid, { tailLines: 1, stream: "stdout" })) === "the end\n",
    );
    assert.equal(session.stdout, Array.from({ length: 9 }, (_, i) => `part ${i}\n`).join(""));
    const kept = (await logs(uid, { stream: "stdout" })).trimEnd().split("\n");
    assert.equal(kept.pop(), "the end");
    const numbers = kept.map((line) => Number(line.split(" ")[0]));
    assert.equal(numbers.at(-1), count - 1);
    for (let i = 1; i < numbers.length; i += 1) assert.equal(numbers[i], (numbers[i - 1] ?? 0) + 1);
    const dir = join(agent.dataDir, "pods", uid, "main");
    const used = () =>
      readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).blocks * 512, 0) / 2 ** 20;
    await agent.until("trimmed", () => used() < 21);
    coordinator.stop(uid);
    await agent.until("removed", () => !coordinator.statuses.has(uid));
  },
);

test("without a reader or without the annotation, a container starts with one log", LIMIT, async () => {
  await killReader();
  rmSync(join(agent.dataDir, "log-streams", "reader.sock"));
  const script = "echo out; echo err >&2; exec sleep 100000";
  coordinator.assign(
    aPod("alone", script),
    aPod("together", script, {}, "combined"),
    aPod("tty", script, { tty: true }),
  );
  await agent.untilReady("alone", "together", "tty");
  for (const uid of ["alone", "together", "tty"]) {
    await agent.until(`${uid}'s lines`, async () =>
      ["err\nout\n", "out\nerr\n"].includes((await logs(uid)).replaceAll("\r", "")),
    );
    assert.match(
      await logs(uid, { stream: "stderr" }),
      /error: .*annotation forage\.dev\/log-streams: separate/,
    );
  }
  assert.match(agent.log(), /log-streams-combined.*forage-logs can't be reached/);
  await startReader();
  assert.deepEqual(readdirSync(join(agent.dataDir, "log-streams")), ["reader.sock"]);
});
