import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  type PodAssignment,
  PodAssignment as PodAssignments,
  PodTemplate,
} from "@forage/proto/forage/agent/v1/agent";
import { Container, type EnvVar, PodConfig, Volume } from "@forage/proto/forest/v1/forage";
import { startTestHost, type TestHost } from "../../hack/lib/test-host.ts";
import { readHostFeatures } from "../src/host-features.ts";
import { AgentUnderTest } from "./agent-under-test.ts";
import { ask } from "./ask.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";

const LIMIT = { timeout: 240_000 };
const IMAGE = "localhost/forage/busybox:1";
const SLEEP = ["sh", "-c", "exec sleep 100000"];
const LENT = "example.com/lent";
const TOKEN_DIR = "/var/run/secrets/forage.dev/serviceaccount";
// The numbers of kernel devices in the form of `stat`.
const [ZERO, NULL] = ["1:5", "1:3"];

describe("environment of containers on a real host", { concurrency: false }, () => {
  let host: TestHost;
  let coordinator: FakeCoordinator;
  let agent: AgentUnderTest;

  before(async () => {
    host = await startTestHost();
    coordinator = await FakeCoordinator.start();
    agent = await AgentUnderTest.prepare(host, coordinator, {
      restart: { backOffBaseSeconds: 1 },
      devices: {
        [LENT]: [
          { path: "/dev/zero", containerPath: "/dev/lent" },
          { path: "/dev/null", containerPath: "/dev/lent" },
        ],
        "example.com/absent": ["/dev/no-such-device"],
      },
      runtimeClasses: { plain: "io.containerd.runc.v2" },
    });
    await agent.start();
  }, LIMIT);
  after(async () => {
    await coordinator?.close();
    await host?.close();
  }, LIMIT);

  test("a container has its own name, address and the services' domains", LIMIT, async () => {
    coordinator.assign(aPod("plain"));
    await agent.untilReady("plain");
    const address = coordinator.statuses.get("plain")?.podIp ?? "";
    assert.equal(await inside("plain", "hostname"), "pod-plain");
    const hosts = await inside("plain", "cat", "/etc/hosts");
    assert.match(hosts, /^127\.0\.0\.1\tlocalhost$/m);
    assert.ok(hosts.includes(`${address}\tpod-plain`), hosts);
    assert.match(
      await inside("plain", "cat", "/etc/resolv.conf"),
      /^search shop\.svc\.cluster\.local svc\.cluster\.local cluster\.local( .*)?\noptions ndots:5$/m,
    );
    assert.equal(
      await inside("plain", "stat", "-c", "%a %u", "/etc/hosts", "/etc/resolv.conf"),
      "644 0\n644 0",
    );
    // As in Kubernetes a container may write there, and the next run starts from the original.
    await inside("plain", "sh", "-c", "echo 192.0.2.1 added >> /etc/hosts");
  });

  test("with dns_policy None, a container has only its own DNS servers", LIMIT, async () => {
    const podConfig = PodConfig.fromPartial({
      dnsPolicy: "None",
      dnsConfig: {
        nameservers: ["192.0.2.53"],
        searches: ["corp.example"],
        options: [
          { name: "ndots", value: "1" },
          { name: "rotate", value: "" },
        ],
      },
    });
    const readOnly = { securityContext: { readOnlyRootFilesystem: true } };
    coordinator.assign(aPod("own-dns", { podConfig }, readOnly));
    await agent.untilReady("own-dns");
    assert.equal(
      await inside("own-dns", "cat", "/etc/resolv.conf"),
      "nameserver 192.0.2.53\nsearch corp.example\noptions ndots:1 rotate",
    );
    await assert.rejects(inside("own-dns", "sh", "-c", "echo x >> /etc/resolv.conf"), /Read-only/);
  });

  test(
    "a container's environment has facts about itself, its resources, secrets and config maps",
    LIMIT,
    async () => {
      const env = [
        fromField("NAME", "metadata.name"),
        fromField("TIER", "metadata.labels['tier']"),
        fromField("NOTE", "metadata.annotations['note']"),
        fromField("NODE", "spec.nodeName"),
        fromField("IP", "status.podIP"),
        fromField("HOST_IP", "status.hostIP"),
        { name: "CPU", valueSource: { $case: "resourceFieldRef", value: "limits.cpu" } },
        { name: "MEMORY", valueSource: { $case: "resourceFieldRef", value: "requests.memory" } },
        { name: "WORD", valueSource: { $case: "secretRef", value: { secretName: "words", key: "magic" } } },
        { name: "URL", valueSource: { $case: "value", value: "http://$(IP)/$(WORD)" } },
      ] as EnvVar[];
      const limits = { cpu: "1500m", memory: "64Mi", ephemeralStorage: "", extended: {} };
      const pod = aPod(
        "facts",
        { podConfig: PodConfig.fromPartial({ annotations: { note: "a b" } }) },
        {
          env,
          resources: { requests: undefined, limits },
          command: ["sh", "-c", "env > /tmp/env; exec sleep 100000"],
        },
      );
      coordinator.assign({ ...pod, labels: { tier: "front" } });
      await agent.until("it waits for the secret", () =>
        /secret words doesn't exist/.test(messagesOf("facts")),
      );
      const words = { name: "words", version: "v1", current: true, data: { magic: Buffer.from("$(NAME)") } };
      coordinator.assign({ ...pod, labels: { tier: "front" }, secrets: [words] });
      await agent.untilReady("facts");
      const ip = coordinator.statuses.get("facts")?.podIp;
      const found = new Set((await inside("facts", "cat", "/tmp/env")).split("\n"));
      for (const line of [
        "NAME=pod-facts",
        "TIER=front",
        "NOTE=a b",
        "NODE=node-1",
        `IP=${ip}`,
        "HOST_IP=127.0.0.1",
        "CPU=2",
        `MEMORY=${64 * 2 ** 20}`,
        "WORD=$(NAME)",
        `URL=http://${ip}/$(NAME)`,
      ]) {
        assert.ok(found.has(line), `${line} in ${[...found].join(" ")}`);
      }
    },
  );

  test("with host_network, a container has the host's network, name and ports", LIMIT, async () => {
    const podConfig = PodConfig.fromPartial({ hostNetwork: true });
    const port = 25_990;
    const httpd = ["sh", "-c", `echo hello > /tmp/index.html && exec httpd -f -p ${port} -h /tmp`];
    const ports = [{ name: "", containerPort: port, protocol: "TCP" }];
    coordinator.assign(aPod("on-host", { podConfig }, { command: httpd, ports }));
    await agent.untilReady("on-host");
    const status = coordinator.statuses.get("on-host");
    assert.deepEqual(
      status?.hostPorts.map(({ containerPort, hostPort }) => [containerPort, hostPort]),
      [[port, port]],
    );
    assert.equal(await inside("on-host", "hostname"), hostname());
    assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "hello\n");
    const ownResolvConf = (await readFile("/etc/resolv.conf", "utf8")).match(/^nameserver .*$/gm) ?? [];
    const resolvConf = await inside("on-host", "cat", "/etc/resolv.conf");
    for (const line of ownResolvConf) assert.ok(resolvConf.includes(line), resolvConf);
  });

  test("UDP host ports answer at every address of the host", LIMIT, async () => {
    const ports = [{ name: "", containerPort: 5353, protocol: "UDP" }];
    coordinator.assign(aPod("udp", {}, { ports }));
    await agent.untilReady("udp");
    const port = coordinator.statuses.get("udp")?.hostPorts[0]?.hostPort ?? 0;
    const answer = join(import.meta.dirname, "answer.ts");
    const inPod = ["--target", String((await containerOf("udp")).pid), "--net"];
    const program = host.spawn("answer", "nsenter", [...inPod, process.execPath, answer, "udp", "5353"]);
    await agent.until("it listens", () => program.readLog().includes("ready"));
    assert.match(await ask("UDP", "127.0.0.1", port), /^udp /);
    program.kill("SIGKILL");
  });

  test("a host whose kernel has no SCTP rejects it", LIMIT, async (t) => {
    const { sctp } = await readHostFeatures({ dataDir: agent.dataDir, runtimeClasses: {} });
    const ports = [{ name: "", containerPort: 5000, protocol: "SCTP" }];
    coordinator.assign(aPod("sctp", {}, { ports }));
    if (sctp) {
      t.diagnostic("this kernel has SCTP");
      await agent.untilReady("sctp");
    } else await agent.until("it says so", () => /no SCTP/.test(messagesOf("sctp")));
  });

  test("assigns devices to one pod at a time, over restarts of container and agent", LIMIT, async () => {
    await agent.until("the node reports them", () => coordinator.node?.allocatable[LENT] === "2");
    assert.equal(coordinator.node?.capacity[LENT], "2");
    assert.equal(coordinator.node?.capacity["example.com/absent"], "1");
    assert.equal(coordinator.node?.allocatable["example.com/absent"], "0");
    const lent = { resources: withExtended({ [LENT]: "1" }) };
    coordinator.assign(aPod("first", {}, lent), aPod("second", {}, lent));
    await agent.untilReady("first", "second");
    const given = await Promise.all([deviceOf("first"), deviceOf("second")]);
    assert.deepEqual(given.toSorted(), [NULL, ZERO].toSorted());
    await inside("first", "sh", "-c", "head -c 1 /dev/lent; echo x > /dev/lent");

    await agent.kill();
    process.kill((await containerOf("first")).pid, "SIGKILL");
    await agent.start();
    await agent.until(
      "run anew",
      () => (coordinator.statuses.get("first")?.containers[0]?.restartCount ?? 0) > 0,
    );
    await agent.untilReady("first", "second");
    assert.deepEqual(await Promise.all([deviceOf("first"), deviceOf("second")]), given);

    coordinator.assign(aPod("third", {}, lent));
    await agent.until("it waits", () =>
      /1 example\.com\/lent are needed and 0 are free/.test(messagesOf("third")),
    );
    coordinator.stop("second");
    await agent.untilReady("third");
    assert.equal(await deviceOf("third"), given[1]);
  });

  test("uses the runtime of the pod's class, and rejects a missing class", LIMIT, async () => {
    await agent.until("the node reports its classes", () => coordinator.node !== undefined);
    assert.deepEqual(coordinator.node?.runtimeClasses, ["plain"]);
    const withClass = (runtimeClassName: string) => ({
      podConfig: PodConfig.fromPartial({ runtimeClassName }),
    });
    coordinator.assign(aPod("classy", withClass("plain")), aPod("unclassy", withClass("other")));
    await agent.untilReady("classy");
    await agent.until("it says so", () => /no runtime class "other"/.test(messagesOf("unclassy")));
  });

  test("the identity token is readable for its user only, and newer tokens replace it", LIMIT, async () => {
    const podConfig = PodConfig.fromPartial({
      serviceAccountName: "builder",
      securityContext: { runAsUser: 1000n },
    });
    const groupConfig = PodConfig.fromPartial({
      serviceAccountName: "builder",
      securityContext: { fsGroup: 2000n },
    });
    const identityToken = { token: "first", expiresAt: { seconds: 1_000n, nanos: 0 } };
    coordinator.assign(
      { ...aPod("user", { podConfig }), identityToken },
      { ...aPod("group", { podConfig: groupConfig }), identityToken },
      aPod("nobody", { podConfig: PodConfig.fromPartial({ serviceAccountName: "builder" }) }),
    );
    await agent.untilReady("user", "group");
    const statOf = (uid: string) => inside(uid, "stat", "-L", "-c", "%a %u %g", `${TOKEN_DIR}/token`);
    assert.equal(await inside("user", "cat", `${TOKEN_DIR}/token`), "first");
    assert.equal(await inside("user", "cat", `${TOKEN_DIR}/namespace`), "shop");
    assert.equal(await statOf("user"), "600 1000 0");
    assert.equal(await statOf("group"), "640 0 2000");
    await assert.rejects(inside("user", "sh", "-c", `echo x > ${TOKEN_DIR}/token`), /Read-only|denied/);

    coordinator.sendTokens({ user: "second" }, 2_000);
    await agent.until(
      "the newer token",
      async () => (await inside("user", "cat", `${TOKEN_DIR}/token`)) === "second",
    );
    assert.equal(await statOf("user"), "600 1000 0");
    const hellos = coordinator.hellos.length;
    await agent.kill();
    await agent.start();
    await agent.until("connected again", () => coordinator.hellos.length > hellos);
    coordinator.sendTokens({ group: "third" }, 3_000);
    await agent.until(
      "a token after the restart",
      async () => (await inside("group", "cat", `${TOKEN_DIR}/token`)) === "third",
    );
    await agent.untilReady("user");
    assert.equal(await inside("user", "cat", `${TOKEN_DIR}/token`), "second", "not the one it began with");
    assert.match(messagesOf("nobody"), /the token of service account builder doesn't exist/);
  });

  test(
    "the node reports claims of the pod's namespace, and removes them only on request",
    LIMIT,
    async () => {
      const volumes = [
        Volume.fromPartial({ name: "data", source: { $case: "pvc", value: { claimName: "db" } } }),
      ];
      const volumeMounts = [{ name: "data", mountPath: "/data", subPath: "", readOnly: false }];
      const pod = aPod("claimer", { volumes }, { volumeMounts });
      coordinator.assign(pod);
      await agent.until("it waits", () => /claim shop\/db doesn't exist/.test(messagesOf("claimer")));
      coordinator.assign({ ...pod, claims: [{ name: "db", capacityBytes: 16n * 2n ** 20n }] });
      await agent.untilReady("claimer");
      await inside("claimer", "sh", "-c", "echo kept > /data/word");
      await agent.until("the claim is reported", () => coordinator.node?.claims.length === 1);
      const { namespace, name, capacityBytes, podUids } = coordinator.node?.claims[0] ?? {};
      assert.deepEqual(
        [namespace, name, capacityBytes, podUids],
        ["shop", "db", 16n * 2n ** 20n, ["claimer"]],
      );

      const removal = { namespace: "shop", name: "db" };
      coordinator.stop("claimer");
      coordinator.revision += 1n;
      coordinator.sendDelta({ claimRemovals: [removal] });
      await agent.until("it is removed", () => coordinator.claimsRemoved.length === 1);
      assert.deepEqual(coordinator.claimsRemoved, [removal]);
      await agent.until("the claim's removal is reported", () => coordinator.node?.claims.length === 0);
    },
  );

  function messagesOf(uid: string): string {
    const status = coordinator.statuses.get(uid);
    return [
      status?.message,
      ...(status?.containers ?? []).map((it) => it.state?.$case === "waiting" && it.state.value.message),
    ].join(" ");
  }

  async function containerOf(uid: string) {
    const found = (await agent.containers()).find((it) => it.running && it.name.includes(`-${uid}-`));
    assert.ok(found, `no container of ${uid} runs`);
    return found;
  }

  /** Returns the output of a command in the pod's container. */
  async function inside(uid: string, ...command: readonly string[]): Promise<string> {
    const { id } = await containerOf(uid);
    return (await host.nerdctl(["exec", id, ...command])).stdout.trimEnd();
  }

  async function deviceOf(uid: string): Promise<string> {
    return (await inside(uid, "stat", "-c", "%t:%T", "/dev/lent")).trim();
  }
});

/** Returns a pod with one container that sleeps, in the namespace `shop`. */
function aPod(uid: string, template: Partial<PodTemplate> = {}, container: object = {}): PodAssignment {
  const podConfig = PodConfig.fromPartial({ ...template.podConfig, terminationGracePeriodSeconds: 1 });
  const main = Container.fromPartial({ name: "main", image: IMAGE, command: SLEEP, ...container });
  return PodAssignments.fromPartial({
    uid,
    namespace: "shop",
    name: `pod-${uid}`,
    workloadKind: "container_service",
    workloadName: "web",
    template: PodTemplate.fromPartial({ ...template, container: main, podConfig }),
    specHash: `hash-${uid}`,
  });
}

function fromField(name: string, field: string): EnvVar {
  return { name, valueSource: { $case: "fieldRef", value: field } };
}

function withExtended(extended: Record<string, string>) {
  return {
    requests: undefined,
    limits: { cpu: "", memory: "", ephemeralStorage: "", extended },
  };
}
