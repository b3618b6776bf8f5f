import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, beforeEach, describe, test } from "node:test";
import type { PlanRequest, PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { aRollout } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { anEvent, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

const MANIFESTS = new URL("kubernetes/", import.meta.url);
const CANARY = "correct-horse";

const WEB = `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: ${CANARY}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      hostIPC: true
      containers: [{name: web, image: web, envFrom: [{secretRef: {name: db}}]}]
`;
const WITHOUT_LOSS = WEB.replace("      hostIPC: true\n", "");

let fake: FakeCoordinator;
before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = rollout([anEvent(RolloutStatus.SUCCEEDED)], aRollout([{}]));
  fake.answers.putObject = ({ object }) => ({ object, action: "created" });
  fake.answers.planObject = () => ({
    action: "update",
    changes: [{ path: "data.password", before: "(3 bytes, not shown)", after: "(13 bytes, not shown)" }],
  });
  fake.answers.plan = () => ({ resources: [], changes: false });
});

function forage(line: string, stdin: string): Promise<Result> {
  return runCommand(line.split(" "), { env: fake.env, stdin });
}

describe("manifests as users write them", () => {
  const counts: Readonly<Record<string, string>> = {
    "autoscaled.yaml": "1 resource in 1 bundle, 1 object",
    "guestbook.yaml": "6 resources in 1 bundle",
    "http-route.yaml": "5 resources in 1 bundle",
    "ingress-tls.yaml": "6 resources in 1 bundle",
    "nightly.yaml": "2 resources in 1 bundle, 1 object",
    "postgres.yaml": "2 resources in 1 bundle, 3 objects",
    "wordpress.yaml": "4 resources in 1 bundle, 3 objects",
  };
  test("lists every manifest in the table of counts", () =>
    assert.deepEqual(readdirSync(MANIFESTS).sort(), Object.keys(counts).sort()));
  for (const [file, count] of Object.entries(counts))
    test(`accepts ${file}, and converts it to an equivalent manifest`, async () => {
      const text = readFileSync(new URL(file, MANIFESTS), "utf8");
      assert.equal((await forage("validate -f -", text)).stdout, `valid: ${count}\n`);
      const { exitCode, stderr } = await forage("apply -f -", text);
      assert.equal(exitCode, 0, stderr);
      const { stdout } = await forage("convert -f -", text);
      await forage("apply -f -", stdout);
      const [direct, converted] = fake.requests("applyResources") as ApplyResourcesRequest[];
      assert.deepEqual(converted, direct);
    });
});

describe("Kubernetes manifests", () => {
  test("puts objects before the resources, and shows no values", async () => {
    const { exitCode, stderr, stdout } = await forage("apply -f - -n shop", WITHOUT_LOSS);
    assert.equal(exitCode, 0, stderr);
    assert.deepEqual(
      fake.calls.map(({ method }) => method).filter((method) => /putObject|applyResources/.test(method)),
      ["putObject", "applyResources"],
    );
    const [put] = fake.requests("putObject") as PutObjectRequest[];
    assert.deepEqual([put?.namespace, put?.object?.namespace, put?.object?.name], ["shop", "shop", "db"]);
    assert.ok(put?.object?.spec?.$case === "secret");
    assert.equal(String(put.object.spec.value.data.password), CANARY);
    assert.match(stderr, /^shop secret\/db created\n/);
    assert.doesNotMatch(stdout + stderr, new RegExp(CANARY));
  });

  test("compares objects with the stored ones in plan and diff, without values of secrets", async () => {
    for (const verb of ["plan", "diff", "plan -o json", "diff -o yaml"]) {
      const { exitCode, stdout, stderr } = await forage(`${verb} -f -`, WITHOUT_LOSS);
      assert.equal(exitCode, 1, stderr);
      assert.match(stdout, /data\.password/);
      assert.doesNotMatch(stdout + stderr, new RegExp(CANARY));
    }
    assert.match(
      (await forage("diff -f -", WITHOUT_LOSS)).stdout,
      /default secret\/db update\n- data\.password: "\(3 bytes, not shown\)"\n\+ data\.password/,
    );
    assert.equal((await forage("plan -o name -f -", WITHOUT_LOSS)).stdout, "secret/db\n");
    fake.answers.planObject = () => ({ action: "unchanged", changes: [] });
    assert.deepEqual((await forage("diff -f -", WITHOUT_LOSS)).exitCode, 0);
    assert.deepEqual((await forage("plan -f -", WITHOUT_LOSS)).stdout, "nothing would change\n");
  });

  test("plans without a priority class that does not exist yet, and prints a note", async () => {
    fake.answers.planObject = () => ({ action: "create", changes: [] });
    const text = readFileSync(new URL("autoscaled.yaml", MANIFESTS), "utf8");
    const { exitCode, stderr } = await forage("plan -f -", text);
    assert.deepEqual(
      [exitCode, stderr],
      [1, 'note: the priority class "front" does not exist yet; its pods are planned without it\n'],
    );
    fake.answers.planObject = () => ({ action: "unchanged", changes: [] });
    assert.equal((await forage("plan -f -", text)).stderr, "");
    const classes = (fake.requests("plan") as PlanRequest[]).map(({ bundle }) => {
      const spec = bundle?.resources[0]?.spec;
      return spec?.$case === "containerService" && spec.value.podConfig?.priorityClassName;
    });
    assert.deepEqual(classes, ["", "front"]);
  });

  test("converts manifests without their objects, which are named", async () => {
    const { stdout, stderr } = await forage("convert -f -", WITHOUT_LOSS);
    assert.match(stderr, /^not in the manifest: default secret\/db; apply puts it from the original file\n$/);
    assert.match(stdout, /secret_name: db/);
    assert.doesNotMatch(stdout, new RegExp(CANARY));
  });

  test("reports a field that can't be converted with its line, and only warns of it with --lossy", async () => {
    for (const verb of ["apply", "plan", "diff", "validate", "convert"]) {
      const { exitCode, stderr } = await forage(`${verb} -f -`, WEB);
      assert.notEqual(exitCode, 0);
      assert.match(
        stderr,
        /standard input:12:16: spec\.template\.spec\.hostIPC: .*\(--lossy leaves it out\)/,
      );
    }
    assert.deepEqual(fake.calls, []);
    const { exitCode, stderr } = await forage("validate -f - --lossy", WEB);
    assert.equal(exitCode, 0);
    assert.match(stderr, /^warning: standard input:12:16: spec\.template\.spec\.hostIPC/);
  });

  test("shows the coordinator's refusal at the object and at the workload", async () => {
    fake.answers.applyResources = () => {
      throw grpcError(status.INVALID_ARGUMENT, "1 field is wrong", [
        { field: "resources[0].container_service.container.image", description: "is no image" },
      ]);
    };
    assert.match(
      (await forage("apply -f -", WITHOUT_LOSS)).stderr,
      /standard input:6:1: Deployment\/web: container_service\.container\.image: is no image/,
    );
    fake.answers.putObject = () => {
      throw grpcError(status.INVALID_ARGUMENT, "1 field is wrong", [
        { field: "object.name", description: "is no name" },
      ]);
    };
    assert.match(
      (await forage("apply -f -", WITHOUT_LOSS)).stderr,
      /standard input:1:1: Secret\/db: name: is no name/,
    );
  });

  test("keeps objects when the resources are deleted, and refuses a namespace that contradicts -n", async () => {
    fake.answers.listResources = () => ({ resources: [] });
    const { stderr } = await forage("delete -f -", WITHOUT_LOSS);
    assert.match(stderr, /^default secret\/db stays: delete it by its own command\n/);
    const inA = WITHOUT_LOSS.replace("{name: web}", "{name: web, namespace: a}");
    assert.match((await forage("validate -f - -n b", inA)).stderr, /"a" contradicts -n b/);
  });

  test("has nothing to apply for a namespace alone", async () => {
    const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}";
    assert.equal((await forage("validate -f -", namespace)).stdout, "valid: 0 resources in 0 bundles\n");
    const { exitCode, stderr } = await forage("apply -f -", namespace);
    assert.deepEqual([exitCode, stderr], [0, "the manifests hold nothing to apply\n"]);
    assert.deepEqual(fake.calls, []);
  });
});
