import assert from "node:assert/strict";
import { join } from "node:path";
import { kill } from "node:process";
import { after, before, describe, test } from "node:test";
import type { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { ResourceRequirements } from "@forage/proto/forest/v1/forage";
import { buildBusyboxImage } from "../../hack/lib/busybox-image.ts";
import { startContainerd } from "../../hack/lib/containerd.ts";
import type { Registry } from "../../hack/lib/registry.ts";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { AgentUnderTest } from "./agent-under-test.ts";
import { anAssignment } from "./an-assignment.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { startPrivateRegistry } from "./private-registry.ts";

const LIMIT = { timeout: 180_000 };
const SLEEPER = ["sh", "-c", "echo up; exec sleep 100000"];
const LOGIN = { username: "robot", password: "s3cr3t-word" };

describe("the agent and its runtime", { concurrency: false }, () => {
  let host: TestHost;
  let registry: Registry;
  let coordinator: FakeCoordinator;
  let agent: AgentUnderTest;

  before(async () => {
    host = await startTestHost();
    registry = await host.startRegistry();
    coordinator = await FakeCoordinator.start();
    agent = await AgentUnderTest.prepare(host, coordinator);
    await agent.start();
  }, LIMIT);
  after(async () => {
    await coordinator?.close();
    await host?.close();
  }, LIMIT);

  const statusOf = (uid: string): PodStatus => {
    const status = coordinator.statuses.get(uid);
    assert.ok(status, `no status of ${uid}`);
    return status;
  };
  const waitingOf = (uid: string) => {
    const state = coordinator.statuses.get(uid)?.containers[0]?.state;
    return state?.$case === "waiting" ? state.value : undefined;
  };

  test(
    "containerd restarts under running pods: they continue to run, and the agent continues to manage them",
    LIMIT,
    async () => {
      coordinator.assign(
        anAssignment({ uid: "one", command: SLEEPER }),
        anAssignment({ uid: "two", command: SLEEPER }),
      );
      await agent.untilReady("one", "two");
      const before = await agent.containers();
      await host.containerd.stopDaemon();
      await agent.until("the log reports that the runtime is away", () =>
        /"event":"host-part-impaired","part":"events"/.test(agent.log()),
      );
      for (const { pid } of before) assert.doesNotThrow(() => kill(pid, 0));
      await startContainerd({ dir: join(host.dir, "c") });
      await agent.until("events come again", () =>
        /"event":"host-part-works-again","part":"events"/.test(agent.log()),
      );
      await agent.untilReady("one", "two");
      assert.deepEqual(await agent.containers(), before);
      for (const uid of ["one", "two"]) assert.equal(statusOf(uid).containers[0]?.restartCount, 0);

      const victim = before.find((it) => it.name.includes("one"));
      assert.ok(victim);
      kill(victim.pid, "SIGKILL");
      await agent.until("the killed one runs again", () => {
        const { ready, containers } = statusOf("one");
        return ready && containers[0]?.restartCount === 1;
      });
      assert.equal(statusOf("two").containers[0]?.restartCount, 0);
      coordinator.stop("one", "two");
      await agent.until("they are gone", async () => (await agent.containers()).length === 0);
    },
  );

  test(
    "an image behind a login is usable for pods with the login, and in no other namespace",
    LIMIT,
    async (t) => {
      const locked = await startPrivateRegistry(registry, LOGIN);
      t.after(() => locked.close());
      const archive = await buildBusyboxImage({ name: "localhost/forage/locked:1" });
      await registry.pushImage(archive, "forage/locked:1");
      const image = `${locked.address}/forage/locked:1`;
      const registryCredentials = [{ name: "pull", server: locked.address, ...LOGIN }];
      const pod = (uid: string, namespace: string) => ({
        ...anAssignment({ uid, image, command: SLEEPER }),
        namespace,
      });
      coordinator.assign(pod("without", "b"));
      await agent.until("it is denied", () => waitingOf("without")?.reason === "ErrImageDenied");
      coordinator.assign({ ...pod("with", "a"), registryCredentials });
      await agent.untilReady("with");
      // The image is now on the host; pods of the same namespace may use it, others may not.
      coordinator.assign(pod("neighbour", "a"), pod("other", "c"));
      await agent.untilReady("neighbour");
      await agent.until("the other is denied", () => waitingOf("other")?.reason === "ErrImageDenied");
      assert.equal(agent.log().includes(LOGIN.password), false);
      assert.equal(JSON.stringify(coordinator.history, bigints).includes(LOGIN.password), false);
      // The record survives a restart, without the registry.
      await locked.close();
      await agent.stop();
      coordinator.statuses.clear();
      await agent.start();
      coordinator.assign(pod("later", "a"), pod("elsewhere", "d"));
      await agent.untilReady("with", "neighbour", "later");
      await agent.until("the other waits", () => waitingOf("elsewhere")?.reason === "ImagePullBackOff");
      coordinator.stop("with", "without", "neighbour", "other", "later", "elsewhere");
      await agent.until("they are gone", async () => (await agent.containers()).length === 0);
    },
  );

  test("evicts a container that writes too much over its image, with the reason", LIMIT, async () => {
    const script = "dd if=/dev/zero of=/big bs=1M count=30 2>/dev/null; echo written; exec sleep 100000";
    const resources = ResourceRequirements.fromPartial({ limits: { ephemeralStorage: "10Mi" } });
    coordinator.assign(
      anAssignment({ uid: "greedy", command: ["sh", "-c", script], container: { resources } }),
    );
    await agent.until("it is evicted", () => coordinator.statuses.get("greedy")?.reason === "Evicted");
    assert.match(
      statusOf("greedy").message,
      /container main has written 30 MiB over its image.* limit is 10 MiB/,
    );
    coordinator.stop("greedy");
  });
});

function bigints(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
