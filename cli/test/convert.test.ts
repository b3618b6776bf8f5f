import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";
import { status } from "@grpc/grpc-js";
import { aRollout } from "./builders.ts";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { anEvent, rollout } from "./rollout.ts";
import { type Result, runCommand } from "./run-command.ts";

const COMPOSE = `name: blog
services:
  web:
    image: app:\${TAG}
    ports: ["8080:80"]
    networks: [front]
    depends_on: [db]
  db: {image: db, expose: [5432], volumes: [data:/var/lib/db]}
volumes: {data: {}}
`;
const WITHOUT_LOSS = COMPOSE.replace("    networks: [front]\n", "");

let fake: FakeCoordinator;
before(async () => {
  fake = await FakeCoordinator.start();
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = rollout([anEvent(RolloutStatus.SUCCEEDED)], aRollout([{}]));
});

function forage(line: string, stdin: string): Promise<Result> {
  return runCommand(line.split(" "), { env: { ...fake.env, TAG: "1" }, stdin });
}

describe("Compose files", () => {
  test("applies Compose files directly, with the same result as their converted manifest", async () => {
    const { exitCode, stderr } = await forage("apply -f - -n shop", WITHOUT_LOSS);
    assert.equal(exitCode, 0, stderr);
    const { stdout } = await forage("convert -f - -n shop", WITHOUT_LOSS);
    await forage("apply -f -", stdout);
    const [direct, converted] = fake.requests("applyResources") as ApplyResourcesRequest[];
    assert.deepEqual(direct, converted);
    assert.deepEqual([direct?.namespace, direct?.labels], ["shop", { app: "blog" }]);
    assert.deepEqual(
      direct?.resources.map(({ name, spec }) => `${spec?.$case}/${name}`),
      ["containerService/web", "service/web", "containerService/db", "service/db"],
    );
  });

  test("reports a field that can't be converted with its line, and only warns of it with --lossy", async () => {
    for (const verb of ["apply", "plan", "diff", "validate", "convert"]) {
      const { exitCode, stderr } = await forage(`${verb} -f -`, COMPOSE);
      assert.notEqual(exitCode, 0);
      assert.match(
        stderr,
        /standard input:6:15: services\.web\.networks: does not separate .*\(--lossy leaves it out\)/,
      );
    }
    const { exitCode, stdout, stderr } = await forage("validate -f - --lossy", COMPOSE);
    assert.deepEqual([exitCode, stdout], [0, "valid: 4 resources in 1 bundle\n"]);
    assert.match(stderr, /^warning: standard input:6:15: services\.web\.networks: does not/);
    assert.deepEqual(fake.calls, []);
  });

  test("shows the coordinator's refusal at the service", async () => {
    fake.answers.applyResources = () => {
      throw grpcError(status.INVALID_ARGUMENT, "1 field is wrong", [
        { field: "resources[2].container_service.container.image", description: "is no image" },
      ]);
    };
    const { stderr } = await forage("apply -f -", WITHOUT_LOSS);
    assert.match(
      stderr,
      /standard input:7:7: services\.db: container_service\.container\.image: is no image/,
    );
  });

  test("refuses a namespace in the file that contradicts -n", async () => {
    const { stderr } = await forage("validate -f - -n b", `x-forage: {namespace: a}\n${WITHOUT_LOSS}`);
    assert.match(stderr, /"a" contradicts -n b/);
  });
});
