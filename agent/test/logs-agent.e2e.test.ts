import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LogOptions, type PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { Container, PodConfig } from "@forage/proto/forest/v1/forage";
import { unmountBelow } from "../../hack/lib/mounts.ts";
import { run } from "../../hack/lib/run.ts";
import { startTestHost } from "../../hack/lib/test-host.ts";
import { AgentUnderTest } from "./agent-under-test.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { until } from "./until.ts";

const LIMIT = { timeout: 300_000 };
// The agent checks a full disk every 10 s, and retries within half a minute.
const RECOVERY_MS = 180_000;
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

async function given(t: TestContext, prepare: (dataDir: string) => Promise<void> = async () => {}) {
  const host = await startTestHost(t.signal);
  const coordinator = await FakeCoordinator.start();
  const agent = await AgentUnderTest.prepare(host, coordinator, { restart: { backOffBaseSeconds: 1 } });
  t.after(async () => {
    await agent.stop();
    await coordinator.close();
    await unmountBelow(agent.dataDir);
    await host.close();
  });
  await prepare(agent.dataDir);
  await agent.start();
  const logs = async (podUid: string, options: Partial<LogOptions> = {}, container = "") => {
    const value = LogOptions.fromPartial(options);
    const session = coordinator.openSession({ podUid, container, kind: { $case: "logs", value } });
    const { error } = await session.ended;
    return error === "" ? session.stdout : `error: ${error}`;
  };
  return { agent, coordinator, logs };
}

/** Reports whether the text has these lines. Two streams have no common order. */
function isSaid(text: string): boolean {
  return text.split("\n").sort().join(" ") === " one three two";
}

function waiting(status: PodStatus | undefined): { reason: string; message: string } {
  const state = status?.containers[0]?.state;
  return state?.$case === "waiting" ? state.value : { reason: "", message: "" };
}

test(
  "logs of real containers: times, since, tail, previous, of init containers too, and none of removed pods",
  LIMIT,
  async (t) => {
    const { agent, coordinator, logs } = await given(t);
    const talk =
      "echo one; echo two >&2; echo three > /dev/stderr; while [ ! -e /tmp/go ]; do sleep 0.1; done";
    coordinator.assign(
      anAssignment({
        uid: "talks",
        command: ["sh", "-c", `${talk}; echo last; exit 3`],
        template: {
          initContainers: [
            Container.fromPartial({
              name: "first",
              image: "localhost/forage/busybox:1",
              command: ["echo", "begin"],
            }),
          ],
          podConfig: PodConfig.fromPartial({ terminationGracePeriodSeconds: 1, restartPolicy: "Always" }),
        },
      }),
    );
    await agent.untilReady("talks");
    await agent.until("all lines", async () => isSaid(await logs("talks")));
    const stamped = (await logs("talks", { timestamps: true })).trimEnd().split("\n");
    assert.deepEqual(stamped.map((line) => line.split(" ")[1]).sort(), ["one", "three", "two"]);
    for (const line of stamped) assert.match(line.split(" ")[0] ?? "", STAMP);
    assert.equal(await logs("talks", {}, "first"), "begin\n");
    assert.match(await logs("talks", { tailLines: 1 }), /^(one|two|three)\n$/);
    assert.match(await logs("talks", { stream: "stderr" }), /error: .*log-streams: separate/);

    // The container writes and ends without an agent.
    await agent.kill();
    const [{ pid } = { pid: 0 }] = (await agent.containers()).filter((it) => it.running);
    writeFileSync(`/proc/${pid}/root/tmp/go`, "");
    await until("it ended", async () => (await agent.containers()).every((it) => !it.running));
    coordinator.statuses.clear();
    await agent.start();
    const last = () =>
      coordinator.statuses.get("talks")?.containers.find(({ name }) => name === "main")?.lastTermination;
    await agent.until("its end is reported", () => last() !== undefined);
    assert.match(last()?.message ?? "", /^(?=.*one)(?=.*two)(?=.*three).*\nlast$/s);
    await agent.until("it runs again", async () => isSaid(await logs("talks")));
    const previous = (await logs("talks", { timestamps: true, previous: true })).trimEnd().split("\n");
    assert.deepEqual(previous.map((line) => line.split(" ")[1]).sort(), ["last", "one", "three", "two"]);
    const newer = Date.parse(previous[3]?.split(" ")[0]?.split("/").at(-1) ?? "") + 1;
    assert.ok(newer > 0, previous[3]);
    const since = { seconds: BigInt(Math.floor(newer / 1_000)), nanos: (newer % 1_000) * 1_000_000 };
    assert.equal(await logs("talks", { previous: true, since }), "");
    assert.ok(isSaid(await logs("talks", { since })));

    coordinator.stop("talks");
    await agent.until("removed", () => !coordinator.statuses.has("talks"));
    assert.equal(existsSync(join(agent.dataDir, "pods", "talks")), false);
  },
);

test(
  "with a full disk, running containers continue, new pods don't start and report the reason, and start once there is space",
  LIMIT,
  async (t) => {
    const { agent, coordinator, logs } = await given(t, async (dataDir) => {
      mkdirSync(dataDir, { recursive: true });
      await run("mount", ["-t", "tmpfs", "-o", "size=96m", "tmpfs", dataDir]);
    });
    const filler = join(agent.dataDir, "filler");
    const leave = (bytes: number) => {
      rmSync(filler, { force: true });
      const { bavail, bsize } = statfsSync(agent.dataDir);
      writeFileSync(filler, "");
      for (let left = bavail * bsize - bytes; left > 0; left -= 1_000_000) {
        try {
          writeFileSync(filler, Buffer.alloc(Math.min(left, 1_000_000)), { flag: "a" });
        } catch {
          // The agent has used the space meanwhile, so the disk is full.
          return;
        }
      }
    };
    const sleeper = { command: ["sh", "-c", "echo up; exec sleep 100000"] };
    coordinator.assign(anAssignment({ uid: "runs", ...sleeper }));
    await agent.untilReady("runs");
    const before = await agent.runningIds();

    await agent.stop();
    leave(2_000_000);
    coordinator.statuses.clear();
    await agent.start();
    await agent.untilReady("runs");
    assert.deepEqual(await agent.runningIds(), before);
    coordinator.assign(anAssignment({ uid: "runs", ...sleeper }), anAssignment({ uid: "new", ...sleeper }));
    await agent.until("held up", () => waiting(coordinator.statuses.get("new")).reason === "DiskPressure");
    assert.match(waiting(coordinator.statuses.get("new")).message, /of disk are left, \d+Mi are needed/);

    // A container that has run here may restart as soon as its lines can be written.
    leave(0);
    const [{ pid } = { pid: 0 }] = (await agent.containers()).filter((it) => it.running);
    process.kill(pid, "SIGKILL");
    await agent.until("it can't be logged", () =>
      /the disk is full/.test(waiting(coordinator.statuses.get("runs")).message),
    );

    truncateSync(filler, 0);
    const ready = (uid: string) => coordinator.statuses.get(uid)?.ready === true;
    await until("both run", () => ready("runs") && ready("new"), RECOVERY_MS);
    assert.equal(await logs("runs"), "up\n");
    assert.deepEqual(readdirSync(join(agent.dataDir, "pods")).sort(), ["new", "runs"]);
  },
);
