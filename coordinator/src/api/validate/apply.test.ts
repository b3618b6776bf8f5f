import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { isFieldPath } from "../../../test/support/forest/fields.ts";
import { mutated } from "../../../test/support/forest/mutate.ts";
import { randomResource } from "../../../test/support/forest/random-resource.ts";
import { aContainerService, aRequest, aService } from "../../../test/support/requests.ts";
import { verdictOn } from "../../../test/support/verdict.ts";

const SEEDS = 400;

test("accepts random valid requests with all fields", () => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const verdict = verdictOn(randomRequest(randomOf(seed)));
    assert.notEqual(verdict.code, "INVALID", `seed ${seed}: ${verdict.message}`);
    for (const { field } of verdict.violations) assert.ok(isFieldPath(field), `seed ${seed}: ${field}`);
  }
});

test("random changes of a request are valid, or INVALID with existing paths", () => {
  const codes = new Set<string>();
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = randomOf(seed);
    let request = randomRequest(random);
    for (let step = 0; step < 12; step++) {
      request = mutated(request, random);
      const { code, violations, message } = verdictOn(request);
      codes.add(code);
      assert.equal(violations.length > 0, code !== "OK", `seed ${seed} step ${step}`);
      assert.ok(message.isWellFormed());
      for (const { field, description } of violations) {
        assert.ok(isFieldPath(field), `seed ${seed} step ${step}: ${field}`);
        assert.ok(
          description !== "" && description.length < 400,
          `seed ${seed} step ${step}: ${description}`,
        );
      }
    }
  }
  // Every field of the API has an effect, so none is unsupported.
  assert.deepEqual([...codes].sort(), ["INVALID", "OK"]);
});

const web = aContainerService("web");

const cases: readonly (readonly [what: string, request: ApplyResourcesRequest, paths: readonly string[]])[] =
  [
    ["a bundle", aRequest("a1", [web, aService("web", "web")]), []],
    ["labels alone, to remove what carries them", aRequest("a1", [], { app: "shop" }), []],
    ["nothing at all", aRequest("a1", []), ["resources"]],
    ["no apply_id", aRequest("", [web]), ["apply_id"]],
    ["an apply_id of 256 bytes", aRequest("é".repeat(128), [web]), []],
    ["an apply_id with a NUL", aRequest("a\0b", [web]), ["apply_id"]],
    ["an apply_id with a line break", aRequest("a\nb", [web]), ["apply_id"]],
    ["an apply_id of a megabyte", aRequest("a".repeat(1_000_000), [web]), ["apply_id"]],
    ["an apply_id of 257 bytes", aRequest(`${"é".repeat(128)}x`, [web]), ["apply_id"]],
    ["no namespace", { ...aRequest("a1", [web]), namespace: "" }, ["namespace"]],
    ["a namespace that is no DNS label", { ...aRequest("a1", [web]), namespace: "a.b" }, ["namespace"]],
    ["the same name twice in one kind", aRequest("a1", [web, web]), ["resources[1].name"]],
    ["the same name in two kinds", aRequest("a1", [web, aService("web", "web")]), []],
    [
      "101 resources",
      aRequest(
        "a1",
        Array.from({ length: 101 }, (_, i) => aService(`s${i}`, "web")),
      ),
      ["resources"],
    ],
    ["a resource without a spec", aRequest("a1", [{ name: "x", spec: undefined }]), ["resources[0]"]],
    ["a name of 49 characters", aRequest("a1", [aService("x".repeat(49), "web")]), ["resources[0].name"]],
    ["a label's key with a space", aRequest("a1", [web], { "a b": "c" }), ["labels[a b]"]],
    ["a label's value with a slash", aRequest("a1", [web], { a: "b/c" }), ["labels[a]"]],
    [
      "65 labels",
      aRequest("a1", [web], Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, ""]))),
      ["labels"],
    ],
    [
      "labels of more than 16 KiB",
      aRequest(
        "a1",
        [web],
        Object.fromEntries(
          Array.from({ length: 60 }, (_, i) => [
            `${"d".repeat(60)}.${"e".repeat(180)}/k${i}`,
            "v".repeat(63),
          ]),
        ),
      ),
      ["labels"],
    ],
    [
      "more than a mebibyte",
      aRequest("a1", [large("a"), large("b"), large("c"), large("d"), large("e"), large("f")]),
      ["resources"],
    ],
  ];

for (const [what, request, paths] of cases) {
  test(`${what} ${paths.length === 0 ? "is valid" : `is invalid at ${paths.join(", ").slice(0, 60)}`}`, () => {
    assert.deepEqual(
      verdictOn(request).violations.map(({ field }) => field),
      paths,
    );
  });
}

test("reports all invalid fields at once", () => {
  const bad = aContainerService("Web", {
    sidecars: [{ name: "x", image: "y" }],
    container: { name: "main", image: "", env: [{ name: "ok" }, { name: "1" }] },
  });
  const { code, violations } = verdictOn({ ...aRequest("", [bad]), namespace: "-" });
  assert.equal(code, "INVALID");
  assert.deepEqual(
    violations.map(({ field }) => field),
    [
      "apply_id",
      "namespace",
      "resources[0].name",
      "resources[0].container_service.container.image",
      "resources[0].container_service.container.env[1].name",
    ],
  );
});

function large(name: string) {
  const env = Array.from({ length: 2 }, (_, i) => ({
    name: `V${i}`,
    valueSource: { $case: "value", value: "x".repeat(100_000) },
  }));
  return aContainerService(name, { container: { name: "main", image: "app:v1", env } });
}

function randomRequest(random: Random): ApplyResourcesRequest {
  const resources = Array.from({ length: random.below(3) + 1 }, (_, i) => randomResource(random, `r${i}`));
  const request = { applyId: "a1", namespace: "shop", resources, labels: { app: "shop" } };
  return ApplyResourcesRequest.decode(ApplyResourcesRequest.encode(request).finish());
}
