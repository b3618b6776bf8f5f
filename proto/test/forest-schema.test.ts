import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type DescMessage, toJson } from "@bufbuild/protobuf";
import { type FieldSchema, forestSchema } from "@forage/proto/forest-schema";
import { buildRegistry } from "./descriptor.ts";
import { sampleOf } from "./sample.ts";

const messages = [...(await buildRegistry())].filter(
  (type): type is DescMessage => type.kind === "message" && type.file.proto.package === "forest.v1",
);

describe("lists every field that a message can have in JSON, and no other", () => {
  for (const desc of messages) {
    test(desc.typeName, () => {
      const variants = Math.max(1, ...desc.oneofs.map((oneof) => oneof.fields.length));
      const seen = new Set<string>();
      for (let variant = 0; variant < variants; variant++) {
        const { message } = sampleOf(desc, "typical", variant);
        for (const useProtoFieldName of [true, false]) {
          const json = toJson(desc, message, { useProtoFieldName });
          assert.deepEqual(unknownPaths(desc.typeName, json), []);
          for (const key of Object.keys(Object(json))) {
            seen.add(key);
          }
        }
      }
      const listed =
        forestSchema[desc.typeName]?.fields.flatMap(({ name, jsonName }) => [name, jsonName]) ?? [];
      assert.deepEqual([...new Set(listed)].sort(), [...seen].sort());
    });
  }
});

test("reports a misspelt field at its path", () => {
  const manifest = {
    namespace: "acme",
    labels: { anything: "goes" },
    resources: [{ name: "api", containerService: { container: { env: [{ name: "A", valeu: "b" }] } } }],
  };
  assert.deepEqual(unknownPaths("forest.v1.ApplyResourcesRequest", manifest), [
    "resources.0.containerService.container.env.0.valeu",
  ]);
});

test("describes how to check each field's value", () => {
  const plain = { kind: "scalar", type: "string", repeated: false, map: false, oneof: undefined, values: [] };
  assert.deepEqual(row("Container", "working_dir"), {
    ...plain,
    name: "working_dir",
    jsonName: "workingDir",
    number: 5,
  });
  assert.partialDeepStrictEqual(row("Container", "args"), { type: "string", repeated: true });
  assert.partialDeepStrictEqual(row("ResourceList", "extended"), {
    type: "string",
    map: true,
    repeated: false,
  });
  assert.partialDeepStrictEqual(row("RouteRule", "timeout"), {
    kind: "duration",
    type: "google.protobuf.Duration",
  });
  assert.partialDeepStrictEqual(row("ForageResource", "job"), {
    kind: "message",
    type: "forest.v1.JobSpec",
    oneof: "spec",
  });
  assert.partialDeepStrictEqual(row("JobConfig", "active_deadline_seconds"), { type: "int64" });
  assert.partialDeepStrictEqual(row("RolloutEvent", "status"), {
    kind: "enum",
    type: "forest.v1.RolloutStatus",
  });
  assert.equal(row("RolloutEvent", "status")?.values[3], "ROLLOUT_STATUS_SUCCEEDED");
});

function row(message: string, name: string): FieldSchema | undefined {
  return forestSchema[`forest.v1.${message}`]?.fields.find((field) => field.name === name);
}

/** A minimal validator that uses the table. */
function unknownPaths(type: string, value: unknown, path: readonly string[] = []): string[] {
  const schema = forestSchema[type];
  assert.ok(schema, type);
  return Object.entries(Object(value)).flatMap(([key, child]) => {
    const field = schema.fields.find(({ name, jsonName }) => key === name || key === jsonName);
    if (field === undefined) {
      return [[...path, key].join(".")];
    }
    if (field.kind !== "message") {
      return [];
    }
    const within = field.repeated || field.map ? Object.entries(Object(child)) : [["", child] as const];
    return within.flatMap(([index, item]) =>
      unknownPaths(field.type, item, [...path, key, ...(index === "" ? [] : [index])]),
    );
  });
}
