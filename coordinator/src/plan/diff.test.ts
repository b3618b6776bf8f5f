import assert from "node:assert/strict";
import { test } from "node:test";
import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { aContainerService, aService } from "../../test/support/requests.ts";
import { changedFields } from "./diff.ts";

const CONTAINER = { name: "main", image: "app:v1" };
const env = (...names: readonly string[]) =>
  names.map((name) => ({ name, valueSource: { $case: "value", value: `${name}!` } }));

const cases: readonly (readonly [string, ForageResource, ForageResource, readonly string[]])[] = [
  ["nothing", web({}), web({}), []],
  ["a value", web({}), web({ image: "app:v2" }), ["container_service.container.image: app:v1 → app:v2"]],
  [
    "a value that comes",
    web({}),
    web({ command: ["run"] }),
    ["container_service.container.command[0]: - → run"],
  ],
  [
    "items go by their names, wherever they stand",
    web({ env: env("A", "B") }),
    web({ env: env("B", "C", "A") }),
    ["container_service.container.env[C].name: - → C", "container_service.container.env[C].value: - → C!"],
  ],
  [
    "items without names go by their places",
    web({ args: ["a", "b"] }),
    web({ args: ["a", "c"] }),
    ["container_service.container.args[1]: b → c"],
  ],
  [
    "keys of maps stand as they are",
    aContainerService("web", { podConfig: { annotations: { camelCase: "1", "a.b/c": "2" } } }),
    aContainerService("web", { podConfig: { annotations: { camelCase: "3", "a.b/c": "2" } } }),
    ["container_service.pod_config.annotations[camelCase]: 1 → 3"],
  ],
  [
    "a message that says something by being there",
    aContainerService("web", { volumes: [{ name: "tmp" }] }),
    aContainerService("web", { volumes: [{ name: "tmp", source: { $case: "emptyDir", value: {} } }] }),
    ["container_service.volumes[tmp].empty_dir: - → {}"],
  ],
  [
    "another kind of thing",
    aService("web", "web"),
    aService("web", "other"),
    ["service.target: web → other"],
  ],
];

for (const [what, before, after, expected] of cases) {
  test(`changes: ${what}`, () => assert.deepEqual(lines(before, after), expected));
}

test("includes the labels of the request", () => {
  const resource = web({});
  const changes = changedFields({ resource, labels: { a: "1", b: "2" } }, { resource, labels: { a: "3" } });
  assert.deepEqual(changes, [
    { path: "labels[a]", before: "1", after: "3" },
    { path: "labels[b]", before: "2", after: undefined },
  ]);
});

test("shortens long values", () => {
  const [change] = changedFields(
    { resource: web({}), labels: {} },
    { resource: web({ image: "x".repeat(500) }), labels: {} },
  );
  assert.equal(change?.after?.length, 201);
});

function web(fields: object): ForageResource {
  return aContainerService("web", { container: { ...CONTAINER, ...fields } });
}

function lines(before: ForageResource, after: ForageResource): string[] {
  const changes = changedFields({ resource: before, labels: {} }, { resource: after, labels: {} });
  return changes.map(({ path, before: from, after: to }) => `${path}: ${from ?? "-"} → ${to ?? "-"}`);
}
