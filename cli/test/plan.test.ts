import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { type PlannedResource, PlanResponse } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { FakeCoordinator, grpcError } from "./fake-coordinator.ts";
import { type Result, runCommand } from "./run-command.ts";

let fake: FakeCoordinator;
let file: string;
const forage = (...argv: string[]): Promise<Result> => runCommand(argv, { env: fake.env });

before(async () => {
  fake = await FakeCoordinator.start();
  file = join(fake.dir, "web.yaml");
  writeFileSync(
    file,
    "namespace: shop\nresources:\n  - name: web\n    container_service:\n      container: { name: main, image: app }\n",
  );
});
after(() => fake.close());
beforeEach(() => {
  fake.calls.length = 0;
  fake.answers = {};
});

test("shows steps by rounds, changed fields and the result, and exits with 1 if something would change", async () => {
  fake.answers.plan = () =>
    PlanResponse.fromPartial({
      changes: true,
      resources: [
        {
          ...about("container_service", "web", "update"),
          changes: [
            { path: "container_service.container.image", before: "app:v1", after: "app:v2" },
            { path: "labels[tier]", after: "front" },
            { path: "container_service.volumes[tmp]", before: "{}" },
          ],
          steps: [
            { round: 1, step: "start-rollout", why: "it was applied", detail: "revision 2" },
            {
              round: 1,
              step: "create-pods",
              count: 3,
              why: "new revision",
              placements: [
                { node: "n1", pods: 2, why: "" },
                { node: "", pods: 1, why: "0/1 nodes: insufficient cpu" },
              ],
            },
            { round: 2, step: "stop-pod", pod: "web-1", why: "an older revision" },
            { round: 3, step: "stop-pod", pod: "web-2", why: "an older revision" },
          ],
          notes: ["would fail: no node fits"],
        },
        about("service", "web", "unchanged"),
        about("route", "old", "remove"),
      ],
    });
  const { stdout, exitCode } = await forage("plan", "-f", file);
  assert.deepEqual(stdout.split("\n"), [
    "~ container_service/web  update",
    '    ~ container_service.container.image: "app:v1" → "app:v2"',
    '    + labels[tier]: "front"',
    '    - container_service.volumes[tmp]: "{}"',
    "    1.   start-rollout (revision 2): it was applied",
    "         create-pods 3: new revision",
    "           2 on n1",
    "           1 on no node: 0/1 nodes: insufficient cpu",
    "    2.–3. stop-pod: an older revision",
    "    would fail: no node fits",
    "= service/web  unchanged",
    "- route/old  remove",
    "2 resources would change, 1 unchanged",
    "",
  ]);
  assert.equal(exitCode, 1);
  const [request] = fake.requests("plan") as { namespace: string; bundle: { resources: unknown[] } }[];
  assert.equal(request?.namespace, "shop");
  assert.equal(request?.bundle.resources.length, 1);
});

test("states that nothing would change, and exits with 0", async () => {
  fake.answers.plan = () =>
    PlanResponse.fromPartial({ changes: false, resources: [about("service", "web", "unchanged")] });
  const { stdout, exitCode } = await forage("plan", "-f", file);
  assert.equal(stdout, "= service/web  unchanged\nnothing would change\n");
  assert.equal(exitCode, 0);
});

test("shows the position of a refusal in the manifest, and exits with 255", async () => {
  fake.answers.plan = () => {
    const field = "resources[0].container_service.container.image";
    throw grpcError(status.INVALID_ARGUMENT, "invalid", [{ field, description: "must have a tag" }]);
  };
  const { stderr, exitCode } = await forage("plan", "-f", file);
  assert.match(stderr, /web\.yaml:5:\d+: .*must have a tag/);
  assert.equal(exitCode, 255);
  assert.equal((await forage("plan", "-f", join(fake.dir, "missing.yaml"))).exitCode, 255);
});

test("prints the coordinator's answer for each bundle as JSON", async () => {
  fake.answers.plan = () =>
    PlanResponse.fromPartial({ changes: true, resources: [about("service", "web", "create")] });
  const { stdout, exitCode } = await forage("plan", "-f", file, "-o", "json");
  const resources = [{ kind: "service", name: "web", action: "create" }];
  assert.deepEqual(JSON.parse(stdout), [{ namespace: "shop", resources, changes: true }]);
  assert.equal(exitCode, 1);
});

function about(
  kind: string,
  name: string,
  action: string,
): Pick<PlannedResource, "kind" | "name" | "action"> {
  return { kind, name, action };
}
