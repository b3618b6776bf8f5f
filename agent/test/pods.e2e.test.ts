import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ContainerStatus, PodPhase, type PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { Probe } from "@forage/proto/forest/v1/forage";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { aRichAssignment, aSecret, aShell, running } from "./a-rich-assignment.ts";
import { AgentUnderTest } from "./agent-under-test.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { until } from "./until.ts";

const LIMIT = { timeout: 240_000 };
const SLOW_MS = 90_000;
const PORT = 8080;
const FOREVER = "exec sleep 100000";

describe("whole pods on a real containerd", { concurrency: false }, () => {
  let host: TestHost;
  let coordinator: FakeCoordinator;
  let agent: AgentUnderTest;
  let outDir: string;

  before(async () => {
    host = await startTestHost();
    outDir = join(host.dir, "out");
    coordinator = await FakeCoordinator.start();
    agent = await AgentUnderTest.prepare(host, coordinator, { restart: { backOffBaseSeconds: 2 } });
    await agent.start();
  }, LIMIT);
  after(async () => {
    await coordinator?.close();
    await host?.close();
  }, LIMIT);

  test(
    "init containers, sidecar, hook and main container begin in order, and probes make it ready",
    LIMIT,
    async () => {
      coordinator.assign(aWeb("web", "first"));
      await eventually("web is ready", () => statusOf("web").ready);
      const lines = await notes("web");
      assert.deepEqual(lines.slice(0, 3), ["seed", "second", "helper"]);
      assert.deepEqual(lines.slice(3).sort(), ["hooked", "main"]);
      const address = statusOf("web").podIp;
      assert.equal(await (await fetch(`http://${address}:${PORT}/word`)).text(), "first");
      assert.deepEqual(
        statusOf("web").containers.map(({ name, init, ready, started }) => [name, init, ready, started]),
        [
          ["seed", true, true, false],
          ["second", true, true, false],
          ["helper", false, true, true],
          ["main", false, true, true],
        ],
      );
      assert.equal((await agent.containers()).length, 2, "init containers are removed once they are done");
    },
  );

  test(
    "a failing readiness probe makes the pod unready with the reason, and restarts nothing",
    LIMIT,
    async () => {
      await inMain("web", "rm /data/up");
      await eventually("not ready", () => !statusOf("web").ready);
      await eventually("says why", () =>
        /main: readiness probe (fails|has not passed yet): HTTP 404/.test(statusOf("web").message),
      );
      await inMain("web", "touch /data/up");
      await eventually("ready again", () => statusOf("web").ready);
      assert.equal(containerOf("web", "main").restartCount, 0);
    },
  );

  test("after kill -9 of the agent nothing runs again, and the pod stays ready", LIMIT, async () => {
    const ids = await agent.runningIds();
    const before = await notes("web");
    await agent.kill();
    coordinator.statuses.clear();
    const sinceIndex = coordinator.history.length;
    await agent.start();
    await eventually("web is reported", () => coordinator.statuses.has("web"));
    await eventually("probed anew", () => statusOf("web").ready);
    const since = coordinator.history.slice(sinceIndex).filter(({ uid }) => uid === "web");
    assert.ok(
      since.every(({ ready }) => ready),
      "at no time unready",
    );
    assert.deepEqual(await agent.runningIds(), ids);
    assert.deepEqual(await notes("web"), before);
  });

  test("running containers see a changed secret", LIMIT, async () => {
    const ids = await agent.runningIds();
    coordinator.assign(aWeb("web", "second"));
    const address = statusOf("web").podIp;
    await eventually("the new content", async () => {
      return (await (await fetch(`http://${address}:${PORT}/word`)).text()) === "second";
    });
    assert.deepEqual(await agent.runningIds(), ids);
  });

  test(
    "a failing liveness probe ends the container after its hook, and only this container restarts",
    LIMIT,
    async () => {
      const helper = containerOf("web", "helper").containerId;
      await inMain("web", "touch /data/broken");
      await eventually(
        "restarted",
        () => containerOf("web", "main").restartCount === 1 && statusOf("web").ready,
      );
      const [end] = containerOf("web", "main").terminations;
      assert.equal(end?.reason, "LivenessProbeFailed");
      assert.match(end?.message ?? "", /^liveness probe failed .*exit code 1/);
      assert.equal(containerOf("web", "helper").containerId, helper);
      const lines = await notes("web");
      assert.equal(lines.filter((it) => it === "seed").length, 1);
      assert.equal(lines.filter((it) => it === "stopping").length, 1);
      assert.equal(lines.filter((it) => it === "hooked").length, 2);
    },
  );

  test("a pod waits for a missing secret, and starts when it is created", LIMIT, async () => {
    const pod = aWeb("later", "word");
    coordinator.assign({ ...pod, secrets: [] });
    await eventually("it waits", () => /secret word doesn't exist/.test(statusOf("later").message));
    const state = containerOf("later", "seed").state;
    assert.equal(state?.$case === "waiting" && state.value.reason, "CreateContainerConfigError");
    coordinator.assign(pod);
    await eventually("it runs", () => statusOf("later").ready);
    coordinator.stop("later");
    await eventually("removed", () => !coordinator.statuses.has("later"));
  });

  test("a failing post_start hook ends the container and is reported", LIMIT, async () => {
    const lifecycle = { postStart: { action: running("echo no luck; exit 4") }, preStop: undefined };
    const main = aShell("main", FOREVER, { lifecycle });
    coordinator.assign(aRichAssignment({ uid: "hook", outDir, secrets: [aSecret("word", "w")], main }));
    await eventually("it failed", () => containerOf("hook", "main").restartCount > 0);
    const [end] = containerOf("hook", "main").terminations;
    assert.equal(end?.reason, "PostStartHookError");
    assert.match(end?.message ?? "", /post_start hook failed: exit code 4: "no luck"/);
    assert.ok(
      coordinator.history.every(({ uid, ready }) => uid !== "hook" || !ready),
      "never ready",
    );
    coordinator.stop("hook");
    await eventually("removed", () => !coordinator.statuses.has("hook"));
  });

  test(
    "a pod that is to run once succeeds with its main container, and its sidecar is stopped",
    LIMIT,
    async () => {
      const main = aShell("main", "sleep 1; echo done; exit 0", {});
      const sidecars = [
        aShell("helper", `trap 'echo bye >> /out/once; exit 0' TERM; while :; do sleep 1; done`),
      ];
      const secrets = [aSecret("word", "w")];
      const once = { outDir, secrets, restartPolicy: "OnFailure" };
      coordinator.assign(aRichAssignment({ ...once, uid: "once", main, sidecars }));
      const bad = aShell("bad", "echo broken; exit 5");
      coordinator.assign(
        aRichAssignment({ ...once, uid: "never", restartPolicy: "Never", main, initContainers: [bad] }),
      );
      await eventually("it is over", () => statusOf("once").phase === PodPhase.SUCCEEDED);
      assert.deepEqual(await notes("once"), ["bye"]);
      await eventually("it failed", () => statusOf("never").phase === PodPhase.FAILED);
      assert.match(statusOf("never").message, /container bad: exited with code 5: broken/);
      coordinator.stop("once", "never");
      await eventually(
        "removed",
        () => !coordinator.statuses.has("once") && !coordinator.statuses.has("never"),
      );
    },
  );

  test("after a reboot init containers run again before the others", LIMIT, async () => {
    const before = await notes("web");
    await agent.stop();
    await agent.actReboot();
    coordinator.statuses.clear();
    await agent.start();
    await eventually("web is ready", () => coordinator.statuses.get("web")?.ready === true);
    const lines = (await notes("web")).slice(before.length);
    assert.deepEqual(lines.slice(0, 3), ["seed", "second", "helper"]);
  });

  test("a removed pod runs its hook, stops sidecars last, and leaves nothing behind", LIMIT, async () => {
    const before = (await notes("web")).length;
    coordinator.stop("web");
    await eventually("removed", () => !coordinator.statuses.has("web"));
    assert.deepEqual((await notes("web")).slice(before), ["stopping", "helper stopped"]);
    const remains = await agent.remains();
    assert.ok(
      Object.values(remains).every((it) => String(it) === ""),
      JSON.stringify(remains),
    );
    const mounts = await readFile("/proc/self/mountinfo", "utf8");
    assert.equal(mounts.includes(join(agent.dataDir, "volumes", "mounts")), false, mounts);
    assert.equal(agent.log().includes('"level":50'), false);
  });

  /** Returns a pod with two init containers, a sidecar with a startup probe, and a web server with all features. */
  function aWeb(uid: string, word: string) {
    const note = (text: string) => `echo ${text} >> /out/${uid}`;
    const serve = `rm -f /data/broken; ${note("main")}; exec httpd -f -p ${PORT} -h /data`;
    return aRichAssignment({
      uid,
      outDir,
      secrets: [aSecret("word", word)],
      graceSeconds: 5,
      initContainers: [
        aShell("seed", `ln -s /secret/word /data/word; touch /data/up; ${note("seed")}`),
        aShell("second", `test -L /data/word && ${note("second")}`),
      ],
      sidecars: [
        aShell(
          "helper",
          `${note("helper")}; trap '${note("helper stopped")}; exit 0' TERM; while :; do sleep 1; done`,
          {
            startupProbe: Probe.fromPartial({
              handler: running(`grep -q helper /out/${uid}`),
              periodSeconds: 1,
              timeoutSeconds: 30,
              failureThreshold: 60,
            }),
          },
        ),
      ],
      main: aShell("main", serve, {
        ports: [{ name: "", containerPort: PORT, protocol: "TCP" }],
        startupProbe: Probe.fromPartial({
          handler: { $case: "tcpSocket", value: { port: PORT } },
          periodSeconds: 1,
          timeoutSeconds: 30,
          failureThreshold: 60,
        }),
        readinessProbe: Probe.fromPartial({
          handler: { $case: "httpGet", value: { path: "/up", port: PORT } },
          periodSeconds: 1,
          timeoutSeconds: 30,
          failureThreshold: 1,
        }),
        livenessProbe: Probe.fromPartial({
          handler: running("test ! -e /data/broken"),
          periodSeconds: 1,
          timeoutSeconds: 60,
          failureThreshold: 2,
        }),
        lifecycle: {
          postStart: { action: running(note("hooked")) },
          preStop: { action: running(note("stopping")) },
        },
      }),
    });
  }

  async function notes(uid: string): Promise<readonly string[]> {
    const text = await readFile(join(outDir, uid), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  async function inMain(uid: string, script: string): Promise<void> {
    await host.nerdctl(["exec", containerOf(uid, "main").containerId, "sh", "-c", script]);
  }

  async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    try {
      await until(what, holds, SLOW_MS);
    } catch (cause) {
      const statuses = JSON.stringify([...coordinator.statuses.values()], (_, it) =>
        typeof it === "bigint" ? String(it) : it,
      );
      throw new Error(`${cause}\n${statuses}\n${agent.log().slice(-6000)}`, { cause });
    }
  }

  function statusOf(uid: string): Pick<PodStatus, "ready" | "message" | "phase" | "podIp" | "containers"> {
    return (
      coordinator.statuses.get(uid) ?? {
        ready: false,
        message: "",
        phase: PodPhase.UNSPECIFIED,
        podIp: "",
        containers: [],
      }
    );
  }

  function containerOf(uid: string, name: string): ContainerStatus {
    const found = statusOf(uid).containers.find((it) => it.name === name);
    return found ?? ContainerStatus.fromPartial({ name });
  }
});
