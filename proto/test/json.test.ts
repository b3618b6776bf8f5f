import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type DescMessage, equals, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { codecOf } from "./codec.ts";
import { buildRegistry } from "./descriptor.ts";
import { sampleOf } from "./sample.ts";

const messages = [...(await buildRegistry())].filter(
  // google.rpc.Status contains an Any, whose JSON form requires all types to be known.
  (type): type is DescMessage => type.kind === "message" && !/^google\./.test(type.typeName),
);

describe("JSON is that of proto3", () => {
  for (const desc of messages) {
    test(desc.typeName, async () => {
      const codec = await codecOf(desc);
      const variants = Math.max(1, ...desc.oneofs.map((oneof) => oneof.fields.length));
      for (const kind of ["typical", "zero"] as const) {
        for (let variant = 0; variant < variants; variant++) {
          const { message, plain } = sampleOf(desc, kind, variant);
          const title = `${kind} ${variant}`;
          assert.deepEqual(codec.fromJSON(toJson(desc, message)), plain, `${title} in camelCase`);
          const snakeCase = toJson(desc, message, { useProtoFieldName: true });
          assert.deepEqual(codec.fromJSON(snakeCase), plain, `${title} in snake_case`);
          const written = fromJson(desc, jsonOf(codec.toJSON(plain)));
          assert.ok(equals(desc, written, message), `${title} written`);
        }
      }
    });
  }
});

describe("fromJSON accepts wrong JSON, so input from users must be checked first", () => {
  test("unknown fields are ignored", () => {
    assert.deepEqual(ApplyResourcesRequest.fromJSON({ namespaec: "a" }), ApplyResourcesRequest.create());
  });

  test("a second member of a oneof is ignored", () => {
    const { resources } = ApplyResourcesRequest.fromJSON({ resources: [{ service: {}, job: {} }] });
    assert.equal(resources[0]?.spec?.$case, "service");
  });

  test("other types are converted, even without a meaningful result", () => {
    const { namespace, resources } = ApplyResourcesRequest.fromJSON({ namespace: 1, resources: {} });
    assert.equal(namespace, "1");
    assert.deepEqual(resources, []);
  });

  test("a duration is checked", () => {
    const route = { rules: [{ timeout: "soon" }] };
    assert.throws(
      () => ApplyResourcesRequest.fromJSON({ resources: [{ route }] }),
      /not a duration .* "soon"/,
    );
  });
});

function jsonOf(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value));
}
