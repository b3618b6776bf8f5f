import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { aContainer, ago, aNode, aPod, aPodStatus, aResource, aRollout } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
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

describe("get", () => {
  test("lists resources of the namespace, with the token", async () => {
    const resources = [
      aResource(),
      aResource({ kind: "service", name: "web", readyEndpoints: 2 }),
      aResource({ name: "old", deleting: true }),
    ];
    fake.answers.listResources = () => ({ resources });
    const { stdout, exitCode } = await forage("get -n shop -l app=web,tier=front");
    assert.deepEqual(stdout.split("\n"), [
      "KIND               NAME  READY     UPDATED   AGE",
      "container_service  web   2/2             2  2h2m",
      "service            web   2               -  2h2m",
      "container_service  old   deleting        2  2h2m",
      "",
    ]);
    assert.equal(exitCode, 0);
    assert.deepEqual(fake.calls, [
      {
        method: "listResources",
        request: {
          namespace: "shop",
          labels: { app: "web", tier: "front" },
          kind: undefined,
          name: undefined,
        },
        authorization: `Bearer ${fake.token}`,
      },
    ]);
  });

  test("shows the address of a load balancer, and the node that announces it", async () => {
    const service = {
      kind: "service",
      name: "web",
      virtualIps: ["10.96.0.5"],
      loadBalancerIps: ["192.0.2.50", "2001:db8::50"],
    };
    fake.answers.listResources = () => ({ resources: [aResource({ ...service, announcedBy: "n1" })] });
    assert.match(
      (await forage("get services")).stdout,
      / 10\.96\.0\.5 outside:192\.0\.2\.50 outside:2001:db8::50 /,
    );
    fake.answers.listEndpoints = () => ({ endpoints: [] });
    fake.answers.listPods = () => ({ kept: [], pods: [] });
    fake.answers.getRollout = () => aRollout([]);
    assert.match(
      (await forage("describe service/web")).stdout,
      /Load balancer: +192\.0\.2\.50, 2001:db8::50, announced by n1\n/,
    );
    fake.answers.listResources = () => ({ resources: [aResource(service)] });
    assert.match((await forage("describe service/web")).stdout, /2001:db8::50, announced by no node\n/);
  });

  test("lists all namespaces", async () => {
    fake.answers.listResources = () => ({ resources: [aResource({ namespace: "shop" })] });
    const { stdout } = await forage("get -A -o wide");
    assert.match(stdout, /^NAMESPACE {2}KIND .*GENERATION.*ROLLOUT/);
    assert.match(stdout, /\nshop /);
    assert.deepEqual(fake.requests("listResources"), [
      { namespace: "", labels: {}, kind: undefined, name: undefined },
    ]);
    assert.match((await forage("get -A -n shop")).stderr, /contradict/);
  });

  test("lists one kind in all its spellings", async () => {
    fake.answers.listResources = () => ({
      resources: [aResource(), aResource({ kind: "service", name: "front" })],
    });
    for (const kind of ["service", "services", "svc", "Service"]) {
      assert.equal((await forage(`get ${kind} -o name`)).stdout, "service/front\n", kind);
    }
    for (const kind of [
      "cs",
      "container_services",
      "container-service",
      "ContainerService",
      "containerservice",
    ]) {
      assert.equal((await forage(`get ${kind} -o name`)).stdout, "container_service/web\n", kind);
    }
    assert.match((await forage("get podz")).stderr, /there is no "podz" to list \(did you mean "pods"\?\)/);
  });

  test("refuses flags that would have no effect", async () => {
    assert.match((await forage("get endpoints -l a=b")).stderr, /endpoints can't be chosen by label/);
    assert.match((await forage("get cs --node n1")).stderr, /--node is for pods/);
  });

  test("accepts a name after its kind, separated by a space or a slash", async () => {
    fake.answers.listPods = ({ name }) => ({ kept: [], pods: [aPod({ name })] });
    for (const line of ["get pod web-7 -o name", "get pod/web-7 -o name", "get pods/web-7 -o name"])
      assert.equal((await forage(line)).stdout, "pod/web-7\n", line);
    assert.match((await forage("get pod/a b")).stderr, /"pod\/a" names one already: leave "b" out/);
    for (const target of ["pod/", "/a", "pod/a/b"])
      assert.match((await forage(`get ${target}`)).stderr, /is not KIND\/NAME/, target);
  });

  test("selects by labels that the coordinator and the command evaluate", async () => {
    fake.answers.listPods = () => ({
      kept: [],
      pods: [aPod({ labels: { app: "web" } }), aPod({ name: "api-1", labels: { app: "api" } })],
    });
    const arguments_ = ["get", "pods", "-o", "name", "-l", "tier=front", "-l", "app in (api, db),!old"];
    assert.equal((await runCommand(arguments_, { env: fake.env })).stdout, "pod/api-1\n");
    assert.deepEqual(fake.requests("listPods"), [
      { namespace: "default", labels: { tier: "front" }, workload: "", node: "", name: "" },
    ]);
    assert.match((await forage("get pods -l app>1")).stderr, /--label: "app>1" is not a selector such as/);
    fake.answers.listNodes = () => ({ nodes: [aNode({ labels: { zone: "a" } })] });
    assert.equal((await forage("get nodes -l zone=a -o name")).stdout, "node/n1\n");
    assert.equal((await forage("get nodes -l zone!=a")).stderr, "no node has these labels\n");
  });

  test("lists pods with their problems", async () => {
    const waiting = aContainer({
      ready: false,
      restartCount: 7,
      lastTermination: {
        exitCode: 3,
        signal: 0,
        reason: "Error",
        message: "starting\nno such table\n",
        startedAt: ago(20),
        finishedAt: ago(12),
      },
      state: {
        $case: "waiting",
        value: {
          reason: "CrashLoopBackOff",
          message: "starts again 20 s after its end",
          retryAt: undefined,
        },
      },
    });
    const pods = [
      aPod(),
      aPod({ name: "web-2", uid: "fff", status: aPodStatus({ ready: false, containers: [waiting] }) }),
      aPod({ name: "web-3", node: "", status: undefined, unschedulable: "0/2 nodes: 2 insufficient cpu" }),
      aPod({ name: "web-4", nodeLost: true, node: "n2" }),
      aPod({ name: "web-5", stopping: true, stopReason: "Preempted by default/db-1" }),
      aPod({ name: "web-6", status: aPodStatus({ phase: PodPhase.PENDING, ready: false, containers: [] }) }),
    ];
    fake.answers.listPods = () => ({ kept: [], pods });
    const { stdout } = await forage("get pods");
    assert.deepEqual(stdout.split("\n"), [
      "POD    READY  STATUS            RESTARTS   AGE  NODE  WHY",
      "web-1  1/1    Running                  0  2d5h  n1    -",
      "web-2  0/1    CrashLoopBackOff         7  2d5h  n1    exited with code 3: no such table; starts again 20 s after its end",
      "web-3  0/0    Unplaced                 0  2d5h  -     0/2 nodes: 2 insufficient cpu",
      "web-4  1/1    NodeLost                 0  2d5h  n2    node n2 is unreachable",
      "web-5  1/1    Stopping                 0  2d5h  n1    Preempted by default/db-1",
      "web-6  0/0    Pending                  0  2d5h  n1    -",
      "",
    ]);
    assert.match(
      (await forage("get pods -o wide")).stdout,
      /\nweb-1 .* 01234567 .* 10\.1\.0\.2 +31000→8080\/tcp +registry\.example\/web:1 +-\n/,
    );
  });

  test("finds one pod by name or uid, and suggests similar names if there is none", async () => {
    fake.answers.listPods = ({ name }) => ({
      kept: [],
      pods: name === "" || "0123456789abcdef".startsWith(name) ? [aPod()] : [],
    });
    const { stdout } = await forage("get pod 0123 -o json");
    assert.equal(JSON.parse(stdout).name, "web-1");
    const { stderr, exitCode } = await forage("get pods web-2");
    assert.deepEqual(
      [stderr, exitCode],
      ['forage: there is no pod "web-2" in namespace "default"; did you mean "web-1"?\n', 1],
    );
  });

  test("prints documents: a list, or one object for a name, even if the list is empty", async () => {
    fake.answers.listResources = () => ({ resources: [aResource()] });
    const [one] = JSON.parse((await forage("get -o json")).stdout);
    assert.deepEqual([one.kind, one.generation, one.readyReplicas], ["container_service", "1", 2]);
    assert.equal(JSON.parse((await forage("get cs web -o json")).stdout).name, "web");
    assert.match(
      (await forage("get -o yaml")).stdout,
      /^- namespace: default\n {2}kind: container_service\n/,
    );
    fake.answers.listResources = () => ({ resources: [] });
    assert.deepEqual(await forage("get -o json"), { exitCode: 0, stdout: "[]\n", stderr: "" });
    assert.deepEqual(await forage("get -n x"), {
      exitCode: 0,
      stdout: "",
      stderr: 'no resources in namespace "x"\n',
    });
  });

  test("lists endpoints", async () => {
    const endpoint = {
      namespace: "default",
      service: "web",
      servicePort: 80,
      portName: "http",
      protocol: "TCP",
      address: "10.0.0.5",
      port: 31000,
      pod: "web-1",
      node: "n1",
    };
    fake.answers.listEndpoints = () => ({
      endpoints: [endpoint, { ...endpoint, address: "fd00::1", portName: "" }],
    });
    const { stdout } = await forage("get endpoints web");
    assert.deepEqual(stdout.split("\n"), [
      "SERVICE  PORT       ADDRESS          POD    NODE",
      "web      80 (http)  10.0.0.5:31000   web-1  n1",
      "web      80         [fd00::1]:31000  web-1  n1",
      "",
    ]);
    assert.deepEqual(fake.requests("listEndpoints"), [{ namespace: "default", service: "web" }]);
  });

  test("lists nodes like node ls", async () => {
    fake.answers.listNodes = () => ({
      nodes: [
        aNode(),
        aNode({ name: "n2", ready: false, unschedulable: true, message: "no heartbeat for 12s" }),
      ],
    });
    const expected = [
      "NODE  STATUS                  PODS  CPU          MEMORY  ADDRESS    AGE  WHY",
      "n1    Ready                      3  1500m/3800m  0/15Gi  10.0.0.5  1d1h  -",
      "n2    NotReady,Unschedulable     3  1500m/3800m  0/15Gi  10.0.0.5  1d1h  no heartbeat for 12s",
      "",
    ];
    for (const line of ["get nodes", "node ls"])
      assert.deepEqual((await forage(line)).stdout.split("\n"), expected);
    assert.deepEqual(
      JSON.parse((await forage("node ls -o json")).stdout).map((node: { name: string; ready?: boolean }) => [
        node.name,
        node.ready,
      ]),
      [
        ["n1", true],
        ["n2", undefined],
      ],
    );
    assert.equal((await forage("node ls -o name")).stdout, "node/n1\nnode/n2\n");
    assert.match((await forage("get node n3")).stderr, /there is no node "n3"; did you mean "n1"\?/);
  });
});

describe("describe", () => {
  test("describes a pod with the termination of its container", async () => {
    const ended = {
      exitCode: 3,
      signal: 0,
      reason: "Error",
      message: "line one\nline two\u001b[2J",
      startedAt: ago(9_000),
      finishedAt: ago(5_400),
    };
    const earlier = { ...ended, exitCode: 137, signal: 9, reason: "OOMKilled" };
    const container = aContainer({
      lastTermination: ended,
      terminations: [ended, earlier],
      restartCount: 2,
      started: false,
    });
    const init = aContainer({ name: "prepare", init: true, ready: false });
    const volumes = [
      { name: "data", source: { $case: "pvc", value: { claimName: "db" } } },
      { name: "keys", source: { $case: "secret", value: { secretName: "tls" } } },
    ];
    const main = { name: "main", volumeMounts: [{ name: "keys", mountPath: "/keys", readOnly: true }] };
    const spec = { $case: "containerService", value: { container: main, volumes } };
    fake.answers.listResources = () => ({ resources: [aResource({ spec: { name: "web", spec } as never })] });
    fake.answers.listPods = () => ({
      kept: [],
      pods: [aPod({ labels: { b: "2", a: "1" }, status: aPodStatus({ containers: [init, container] }) })],
    });
    const { stdout } = await forage("describe pod/web-1");
    assert.match(stdout, /^Pod: +web-1\nNamespace: +default\n/);
    assert.match(stdout, /\nLabels: +a=1,b=2\n/);
    assert.match(stdout, /\nHost ports: +31000→8080\/tcp\n/);
    assert.match(stdout, /\nContainer main:\n {2}Image: +registry\.example\/web:1\n/);
    assert.match(
      stdout,
      /\n {2}Last end:\n {6}exited with code 3 \(Error\) 1h30m ago after 1h; last lines:\n {6}line one\n {6}line two\\x1b\[2J\n/,
    );
    assert.match(stdout, /\n {2}Before: +killed by signal 9 \(OOMKilled\) 1h30m ago after 1h\n/);
    assert.match(stdout, /\n {2}Started: +no: its startup probe has not passed\n/);
    assert.match(stdout, /\nInit container prepare:\n/);
    assert.match(stdout, /\n {2}data +claim\/db +-\n {2}keys +secret\/tls +main:\/keys \(read only\)\n/);
  });

  test("describes a workload with its pods and its rollout", async () => {
    fake.answers.listResources = () => ({ resources: [aResource()] });
    fake.answers.listPods = () => ({
      kept: [],
      pods: [aPod({ name: "web-b", createdAt: ago(5) }), aPod({ name: "web-a", createdAt: ago(50) })],
    });
    fake.answers.getRollout = () => aRollout([{ message: "2/2 ready" }]);
    const { stdout } = await forage("describe cs/web");
    assert.equal((await forage("describe cs web -o name")).stdout, "container_service/web\n");
    assert.match((await forage("describe cs/web api")).stderr, /names one already: leave "api" out/);
    assert.match(stdout, /\nReady: +2\/2\n/);
    assert.match(stdout, /\nRollout:\n {4}rollout r-1 done: 1 resource\n {4}done: 2\/2 ready\n/);
    assert.match(stdout, /\nPods:\n {2}POD .*\n {2}web-a .*\n {2}web-b .*\n/);
    const document = JSON.parse((await forage("describe cs/web -o json")).stdout);
    assert.deepEqual(Object.keys(document), ["resource", "pods", "endpoints", "rollout"]);
  });

  test("describes a service with its endpoints", async () => {
    fake.answers.listResources = () => ({ resources: [aResource({ kind: "service", name: "web" })] });
    fake.answers.listPods = () => ({ kept: [], pods: [] });
    fake.answers.getRollout = () => aRollout([]);
    const where = {
      namespace: "default",
      service: "web",
      servicePort: 80,
      portName: "http",
      protocol: "TCP",
    };
    const endpoint = { ...where, address: "10.0.0.5", port: 31_000, pod: "web-1", node: "n1" };
    fake.answers.listEndpoints = () => ({ endpoints: [endpoint] });
    const { stdout } = await forage("describe service/web");
    assert.match(stdout, /\nEndpoints:\n {2}SERVICE {2}PORT .*\n {2}web +80 \(http\) {2}10\.0\.0\.5:31000 /);
  });

  test("describes a node with its pods", async () => {
    fake.answers.listNodes = () => ({ nodes: [aNode()] });
    fake.answers.listPods = () => ({ kept: [], pods: [aPod()] });
    const { stdout } = await forage("describe node/n1");
    assert.match(
      stdout,
      /\nResources:\n {2}RESOURCE {2}CAPACITY {2}FOR PODS {2}REQUESTED\n {2}cpu +4 +3800m +1500m\n/,
    );
    assert.match(stdout, /\nPods:\n {2}NAMESPACE {2}POD /);
    assert.deepEqual(fake.requests("listPods"), [
      { namespace: "", labels: {}, workload: "", node: "n1", name: "" },
    ]);
  });

  test("reports missing and ambiguous names", async () => {
    fake.answers.listResources = () => ({ resources: [aResource({ name: "shop" })] });
    assert.match(
      (await forage("describe cs/shpo")).stderr,
      /there is no container_service "shpo" .*did you mean "shop"/,
    );
    assert.match((await forage("describe shop")).stderr, /its kind is missing: container_service\/shop/);
    assert.match(
      (await forage("describe servce/x")).stderr,
      /there is no kind "servce" \(did you mean "service"\?\)/,
    );
  });
});
