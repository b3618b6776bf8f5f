import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { kill } from "node:process";
import { after, before, describe, test } from "node:test";
import { LogOptions, PodPhase, type PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { AgentUnderTest } from "./agent-under-test.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";

const LIMIT = { timeout: 180_000 };
const SLEEPER = { command: ["sh", "-c", "echo up; exec sleep 100000"] };

describe("the agent on a real containerd", { concurrency: false }, () => {
  let host: TestHost;
  let coordinator: FakeCoordinator;
  let agent: AgentUnderTest;

  before(async () => {
    host = await startTestHost();
    coordinator = await FakeCoordinator.start();
    // Containers are killed repeatedly here, so the back-off is short; its length is tested elsewhere.
    agent = await AgentUnderTest.prepare(host, coordinator, { restart: { backOffBaseSeconds: 2 } });
    await agent.start();
  }, LIMIT);
  after(async () => {
    await coordinator?.close();
    await host?.close();
  }, LIMIT);

  test("runs the assigned pods and reports their addresses", LIMIT, async () => {
    const httpd = [
      "sh",
      "-c",
      "mkdir -p /www && echo hello > /www/index.html && exec httpd -f -p 8080 -h /www",
    ];
    coordinator.assign(
      anAssignment({ uid: "web1", command: httpd, port: 8080 }),
      anAssignment({ uid: "web2", command: httpd, port: 8080 }),
      anAssignment({ uid: "plain", ...SLEEPER }),
    );
    await agent.untilReady("web1", "web2", "plain");
    const ports = ["web1", "web2"].map((uid) => coordinator.statuses.get(uid)?.hostPorts[0]?.hostPort);
    assert.notEqual(ports[0], ports[1]);
    for (const port of ports) {
      assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "hello\n");
    }
    assert.equal((await agent.runningIds()).length, 3);
  });

  test("a killed container restarts at once, and its end is reported", LIMIT, async (t) => {
    const before = statusOf("plain");
    const pid = await pidOf("plain");
    const beganMs = performance.now();
    kill(pid, "SIGKILL");
    await agent.until("it runs again", () => {
      const now = statusOf("plain");
      return now.ready && containerIdOf(now) !== containerIdOf(before);
    });
    t.diagnostic(`kill to running: ${Math.round(performance.now() - beganMs)} ms`);
    const [container] = statusOf("plain").containers;
    assert.equal(container?.restartCount, 1);
    assert.equal(container?.lastTermination?.signal, 9);
    assert.equal(container?.lastTermination?.message, "up");
    await agent.until("the old one is removed", async () => (await agent.containers()).length === 3);
  });

  test(
    "after kill -9 of the agent, the same containers keep running on the same ports without restarts",
    LIMIT,
    async () => {
      const ids = await agent.runningIds();
      const ports = coordinator.statuses.get("web1")?.hostPorts;
      await agent.kill();
      coordinator.statuses.clear();
      await agent.start();
      await agent.untilReady("web1", "web2", "plain");
      assert.deepEqual(await agent.runningIds(), ids);
      assert.equal(statusOf("web1").containers[0]?.restartCount, 0);
      assert.equal(statusOf("plain").containers[0]?.restartCount, 1);
      assert.deepEqual(statusOf("web1").hostPorts, ports);
      assert.equal(await (await fetch(`http://127.0.0.1:${ports?.[0]?.hostPort}/`)).text(), "hello\n");
    },
  );

  test(
    "an agent with damaged files keeps the containers and their ports, and the node reports the damage",
    LIMIT,
    async () => {
      const ids = await agent.runningIds();
      const pids = await Promise.all(["web1", "web2", "plain"].map(pidOf));
      const ports = statusOf("web1").hostPorts;
      await agent.kill();
      const sandboxes = join(agent.dataDir, "network", "sandboxes");
      for (const name of await readdir(sandboxes)) await writeFile(join(sandboxes, name), "");
      for (const uid of ["web1", "plain"]) {
        const state = join(agent.dataDir, "journal", "states", `${uid}.state`);
        const bytes = await readFile(state);
        bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40);
        await writeFile(state, bytes);
      }
      await rm(join(agent.dataDir, "boot-id"));
      coordinator.statuses.clear();

      await agent.start();
      await agent.untilReady("web1", "web2", "plain");

      assert.deepEqual(await agent.runningIds(), ids);
      assert.deepEqual(await Promise.all(["web1", "web2", "plain"].map(pidOf)), pids);
      assert.deepEqual(statusOf("web1").hostPorts, ports);
      assert.equal(await (await fetch(`http://127.0.0.1:${ports[0]?.hostPort}/`)).text(), "hello\n");
      assert.match(agent.log(), /"data-file-damaged"/);
      const isReported = () =>
        coordinator.node?.conditions.some(
          ({ type, status, message }) => type === "DataDamaged" && status && message.includes("web1.state"),
        ) === true;
      await agent.until("the node's condition", isReported);
    },
  );

  test(
    "containers that died while the agent was not running are restarted when it is back",
    LIMIT,
    async () => {
      const pid = await pidOf("web1");
      await agent.kill();
      kill(pid, "SIGKILL");
      coordinator.statuses.clear();
      await agent.start();
      await agent.untilReady("web1", "web2", "plain");
      assert.equal(statusOf("web1").containers[0]?.restartCount, 1);
      assert.equal(statusOf("web2").containers[0]?.restartCount, 0);
    },
  );

  test("without a coordinator, a new agent runs all pods of the journal", LIMIT, async () => {
    await coordinator.close();
    const before = await agent.runningIds();
    const victims = [await pidOf("web2"), await pidOf("plain")];
    await agent.kill();
    for (const pid of victims) kill(pid, "SIGKILL");
    await agent.start();
    await agent.until("three run again", async () => (await agent.runningIds()).length === 3);
    const after = await agent.runningIds();
    assert.equal(after.filter((id) => before.includes(id)).length, 1);

    coordinator = await coordinator.successor();
    agent.coordinator = coordinator;
  });

  test("SIGTERM ends the agent but not its containers", LIMIT, async () => {
    await agent.untilReady("web1", "web2", "plain");
    const before = await agent.runningIds();
    assert.equal(await agent.stop(), 0);
    assert.deepEqual(await agent.runningIds(), before);
    coordinator.statuses.clear();
    await agent.start();
    await agent.untilReady("web1", "web2", "plain");
    assert.deepEqual(await agent.runningIds(), before);
  });

  test("rejects a second agent on the same directory", LIMIT, async () => {
    const second = await agent.runSecond();
    assert.equal(second.exitCode, 1, second.output);
    assert.match(second.output, /another agent uses/);
    assert.equal(coordinator.connections, 1);
  });

  test("after a reboot all pods restart by themselves, on the same ports", LIMIT, async () => {
    const ports = statusOf("web1").hostPorts;
    const before = await agent.runningIds();
    await agent.stop();
    await agent.actReboot();
    coordinator.statuses.clear();
    await agent.start();
    await agent.untilReady("web1", "web2", "plain");
    const [container] = statusOf("web1").containers;
    assert.equal(container?.lastTermination?.reason, "HostRebooted");
    assert.equal(
      (await agent.runningIds()).some((id) => before.includes(id)),
      false,
    );
    assert.deepEqual(statusOf("web1").hostPorts, ports);
    assert.equal(await (await fetch(`http://127.0.0.1:${ports[0]?.hostPort}/`)).text(), "hello\n");
  });

  test(
    "a crashing container restarts after increasing delays, and its status gives the reason",
    LIMIT,
    async () => {
      coordinator.assign(anAssignment({ uid: "crash", command: ["sh", "-c", "echo oh no; exit 3"] }));
      await agent.until("held back", () => waitingReason("crash") === "CrashLoopBackOff");
      const [container] = statusOf("crash").containers;
      assert.equal(container?.lastTermination?.exitCode, 3);
      assert.equal(container?.lastTermination?.message, "oh no");
      assert.equal(container?.restartCount, 1);
      assert.match(statusOf("crash").message, /exited with code 3: oh no/);
      coordinator.stop("crash");
      await agent.until("removed", () => !coordinator.statuses.has("crash"));
    },
  );

  test("invalid pods report their problem and affect no others", LIMIT, async () => {
    coordinator.assign(
      anAssignment({ uid: "noimage", image: "127.0.0.1:1/none:1" }),
      anAssignment({ uid: "nocommand", command: ["/does/not/exist"] }),
      anAssignment({ uid: "badname", container: { name: "../x" } }),
      anAssignment({ uid: "good", ...SLEEPER }),
    );
    await agent.untilReady("good");
    await agent.until("the pull fails", () => waitingReason("noimage") === "ImagePullBackOff");
    await agent.until("the start fails", () => waitingReason("nocommand") === "CreateError");
    assert.match(statusOf("nocommand").message, /does\/not\/exist/);
    assert.equal(statusOf("badname").phase, PodPhase.FAILED);
    assert.equal(statusOf("badname").reason, "InvalidSpec");
    coordinator.stop("noimage", "nocommand", "badname", "good");
    await agent.until(
      "removed",
      () => !coordinator.statuses.has("good") && !coordinator.statuses.has("badname"),
    );
  });

  test("exec and logs reach the container", LIMIT, async () => {
    const exec = coordinator.openSession({
      podUid: "plain",
      container: "",
      kind: {
        $case: "exec",
        value: { command: ["sh", "-c", "cat; exit 7"], stdin: true, tty: false, size: undefined },
      },
    });
    await exec.write("through");
    await exec.endInput();
    assert.deepEqual(await exec.ended, { exitCode: 7, error: "" });
    assert.equal(exec.stdout, "through");
    const askForNobody = "cat /etc/resolv.conf; nslookup nobody.e2e.svc.cluster.local";
    const resolver = coordinator.openSession({
      podUid: "plain",
      container: "main",
      kind: {
        $case: "exec",
        value: { command: ["sh", "-c", askForNobody], stdin: false, tty: false, size: undefined },
      },
    });
    await resolver.ended;
    assert.match(resolver.stdout, /^nameserver 10\.\d+\.\d+\.1$/m, "the agent itself");
    assert.match(resolver.stdout, /NXDOMAIN/, "it answers");
    const logs = coordinator.openSession({
      podUid: "plain",
      container: "",
      kind: { $case: "logs", value: LogOptions.fromPartial({ tailLines: undefined, previous: false }) },
    });
    assert.deepEqual(await logs.ended, { exitCode: 0, error: "" });
    assert.equal(logs.stdout, "up\n");
    const previous = coordinator.openSession({
      podUid: "plain",
      container: "",
      kind: { $case: "logs", value: LogOptions.fromPartial({ tailLines: 1, previous: true }) },
    });
    assert.deepEqual(await previous.ended, { exitCode: 0, error: "" });
    assert.equal(previous.stdout, "up\n");
    const nobody = coordinator.openSession({
      podUid: "nobody",
      container: "",
      kind: { $case: "logs", value: LogOptions.fromPartial({ tailLines: undefined, previous: false }) },
    });
    assert.match((await nobody.ended).error, /no such container/);
  });

  test(
    "removed pods leave nothing behind, whether they were stopped or had already ended",
    LIMIT,
    async () => {
      coordinator.stop("web1", "web2");
      coordinator.forget("plain");
      await agent.until("the coordinator has no status left", () => coordinator.statuses.size === 0);
      await agent.until("nothing is left", async () => {
        const remains = await agent.remains();
        return Object.values(remains).every((it) => String(it) === "");
      });
      const { namespaces } = await host.networkRemains();
      // Only namespaces prepared for future pods remain.
      assert.ok(namespaces.length <= 5, namespaces.join(" "));
      assert.equal(agent.log().includes('"level":50'), false);
    },
  );

  function statusOf(uid: string): PodStatus {
    const status = coordinator.statuses.get(uid);
    assert.ok(status, `no status of ${uid}`);
    return status;
  }

  function waitingReason(uid: string): string {
    const state = coordinator.statuses.get(uid)?.containers[0]?.state;
    return state?.$case === "waiting" ? state.value.reason : "";
  }

  function containerIdOf(status: PodStatus): string {
    return status.containers[0]?.containerId ?? "";
  }

  async function pidOf(uid: string): Promise<number> {
    const found = (await agent.containers()).find((it) => it.running && it.name.includes(`-${uid}-`));
    assert.ok(found, `${uid} runs`);
    return found.pid;
  }
});
