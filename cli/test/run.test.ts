import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { ApplyResourcesRequest, ForageResource } from "@forage/proto/forest/v1/forage";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { aNode, aResource, aRollout } from "./builders.ts";
import { FakeCoordinator } from "./fake-coordinator.ts";
import { anEvent, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {
    ...rollout([anEvent(RolloutStatus.SUCCEEDED)], aRollout([{}])),
    listResources: () => ({ resources: [] }),
  };
});

const forage = (line: string, stdin?: string): Promise<Result> =>
  runCommand(line.split(" "), {
    env: { ...fake.env, COLOUR: "blue" },
    ...(stdin !== undefined && { stdin }),
  });

const IMAGE = "registry.example/team/web:1";
const FULL = `run ${IMAGE} -n shop --replicas 2 -p 80:8080 -p 81:8080 -p 53:53/udp --type NodePort --route a.example --route b.example --route c.example/api --tls -e A=b -e COLOUR --secret P=db/password --config-map conf:/conf -v data:/data --cpu 250m:1 --memory 128Mi --constraint zone=a --constraint disk!=hdd --constraint !gpu --command sh --health /healthz --registry r -l team=x -- -c ls`;

describe("forage run", () => {
  test("deploys as the flags specify, with the same result as the manifest of --dry-run", async () => {
    const { exitCode, stderr } = await forage(FULL);
    assert.equal(exitCode, 0, stderr);
    const [sent] = fake.requests("applyResources") as ApplyResourcesRequest[];
    assert.deepEqual([sent?.namespace, sent?.labels], ["shop", { run: "web", team: "x" }]);
    assert.deepEqual(
      sent?.resources.map(({ name, spec }) => `${spec?.$case}/${name}`),
      ["containerService/web", "service/web", "route/web", "route/web-2"],
    );
    for (const format of ["yaml", "json"]) {
      const { stdout: manifest } = await forage(`${FULL.replace(" -- ", ` --dry-run -o ${format} -- `)}`);
      fake.calls.length = 0;
      assert.equal((await forage("apply -f -", manifest)).exitCode, 0);
      assert.deepEqual(fake.requests("applyResources"), [sent], format);
    }
  });

  test("calls no coordinator with --dry-run", async () => {
    assert.match(
      (await forage(`run ${IMAGE} --dry-run`)).stdout,
      /^namespace: default\nlabels:\n {2}run: web\n/,
    );
    assert.deepEqual(fake.calls, []);
  });

  test("reads the fields of a container from the flags", async () => {
    await forage(FULL);
    const [sent] = fake.requests("applyResources") as ApplyResourcesRequest[];
    const [workload] = (sent?.resources ?? []) as ForageResource[];
    const spec = workload?.spec?.$case === "containerService" ? workload.spec.value : undefined;
    const container = spec?.container;
    assert.deepEqual(container?.command, ["sh"]);
    assert.deepEqual(container?.args, ["-c", "ls"]);
    assert.deepEqual(
      container?.env.map(({ name, valueSource }) => [name, valueSource?.$case]),
      [
        ["A", "value"],
        ["COLOUR", "value"],
        ["P", "secretRef"],
      ],
    );
    assert.deepEqual(
      container?.ports.map(({ name }) => name),
      ["tcp-8080", "udp-53"],
    );
    assert.deepEqual([spec?.scaling?.replicas, spec?.podConfig?.nodeSelector], [2, { zone: "a" }]);
    assert.deepEqual(
      spec?.podConfig?.affinity?.nodeAffinity?.required?.terms[0]?.matchExpressions.map(
        ({ operator }) => operator,
      ),
      ["NotIn", "DoesNotExist"],
    );
  });

  test("overrides the variables of a file by --env", async () => {
    const file = join(fake.dir, "web.env");
    writeFileSync(file, "# comment\nA=1\nB=2\n");
    const { stdout } = await forage(`run ${IMAGE} --env-file ${file} -e A=3 --dry-run -o json`);
    assert.deepEqual(JSON.parse(stdout).resources[0].container_service.container.env, [
      { name: "A", value: "3" },
      { name: "B", value: "2" },
    ]);
  });

  test("prints the addresses of the service", async () => {
    const service = { target: "web", ports: [{ port: 80, protocol: "" }] };
    fake.answers.listNodes = () => ({ nodes: [aNode()] });
    fake.answers.listResources = ({ labels }) => ({
      resources:
        labels.run === undefined
          ? []
          : [
              aResource({
                kind: "service",
                spec: { name: "web", spec: { $case: "service", value: service } } as never,
                virtualIps: ["10.96.0.7"],
                nodePorts: [{ port: 80, protocol: "TCP", nodePort: 30080 }],
                loadBalancerIps: ["2001:db8::1"],
              }),
              aResource({
                kind: "route",
                spec: { name: "web", spec: { $case: "route", value: { rules: [] } } } as never,
                route: {
                  gateway: "default",
                  hostnames: [{ hostname: "a.example", tls: "Terminate" }],
                } as never,
              }),
            ],
    });
    const { stdout, stderr } = await forage(`run ${IMAGE} -p 80`);
    assert.deepEqual(
      stdout.split("\n").slice(1),
      [
        "",
        "ADDRESS             REACHED",
        'https://a.example/  through the gateway "default"',
        "[2001:db8::1]:80    from outside the cluster",
        "10.0.0.5:30080      on every host",
        "web.default:80      in pods, by name",
        "10.96.0.7:80        on hosts and in pods",
        "",
      ],
      stderr,
    );
  });

  test("changes no resource that was deployed in another way", async () => {
    fake.answers.listResources = () => ({ resources: [aResource({ labels: { app: "web" } })] });
    const { exitCode, stderr } = await forage(`run ${IMAGE}`);
    assert.equal(exitCode, 1);
    assert.match(stderr, /container_service\/web exists in namespace "default".*--name/);
    assert.deepEqual(fake.requests("applyResources"), []);
    fake.answers.listResources = () => ({ resources: [aResource({ labels: { run: "web" } })] });
    assert.equal((await forage(`run ${IMAGE} --detach`)).stdout, "r-1\n");
  });

  test("refuses contradictory flags before anything is sent", async () => {
    for (const [flags, message] of [
      ["--route a.example", /--route needs a port/],
      ["--type NodePort", /--type needs a port/],
      ["--health /x", /--health needs a port/],
      ["-p 80 --tls", /--tls needs a --route/],
      ["-p 53/udp --route a.example", /must be a TCP port/],
      ["-l run=other", /is set to the name/],
      ["--env-file - --env-file -", /only once/],
      ["-p 80 -p 80:81 --type Other", /--type/],
    ] as const) {
      const { exitCode, stderr } = await forage(`run ${IMAGE} ${flags}`);
      assert.deepEqual([exitCode, message.test(stderr)], [1, true], `${flags}: ${stderr}`);
    }
    assert.deepEqual(fake.calls, []);
  });
});
