import assert from "node:assert/strict";
import { test } from "node:test";
import { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { forageSchema } from "@forage/proto/forage-schema";
import { ApplyResourcesRequest, ForageServiceService } from "@forage/proto/forest/v1/forage";
import { forestSchema } from "@forage/proto/forest-schema";
import { aContainerService, aRequest, aService } from "../../test/support/requests.ts";
import { requestTypeOf, UnknownFields } from "./unknown-fields.ts";

const TYPE = "forest.v1.ApplyResourcesRequest";
const request = aRequest("a1", [aContainerService("web"), aService("web", "web")]);

function fieldsOf(bytes: Buffer, of = TYPE): string[] {
  return new UnknownFields().find(of, bytes).map(({ field }) => field);
}

function encoded(message = request): Buffer {
  return Buffer.from(ApplyResourcesRequest.encode(message).finish());
}

/** Encodes a field with the given bytes as its content. */
function field(number: number, content: Uint8Array): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

/**
 * Returns a function that wraps content in nested messages, given by name with the outermost first.
 */
function nested(...names: readonly string[]): (content: Buffer) => Buffer {
  let message = TYPE;
  const numbers = names.map((name) => {
    const found = forestSchema[message]?.fields.find((it) => it.name === name);
    assert.ok(found, name);
    message = found.type;
    return found.number;
  });
  return (content) => numbers.reduceRight((inner, number) => field(number, inner), content);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    bytes.push(left < 128 ? left : (left % 128) + 128);
    if (left < 128) return Buffer.from(bytes);
  }
}

test("finds no unknown field in a request of this version", () => {
  assert.deepEqual(fieldsOf(encoded()), []);
});

for (const [what, unknown] of [
  ["bytes", field(999, Buffer.from("x"))],
  ["a number", Buffer.concat([varint(999 * 8), varint(300)])],
  ["a number of 32 bits", Buffer.concat([varint(999 * 8 + 5), Buffer.alloc(4)])],
  ["a number of 64 bits", Buffer.concat([varint(999 * 8 + 1), Buffer.alloc(8)])],
] as const) {
  test(`finds an unknown field at its path: ${what}`, () => {
    assert.deepEqual(fieldsOf(Buffer.concat([encoded(), unknown])), ["#999"]);
    assert.deepEqual(fieldsOf(Buffer.concat([unknown, encoded()])), ["#999"]);
    const resource = nested("resources", "container_service", "container")(unknown);
    const found = fieldsOf(Buffer.concat([encoded(), resource, field(999, Buffer.alloc(0))]));
    assert.equal(found.length, 2);
    assert.equal(found[0], "resources[2].container_service.container.#999");
    assert.equal(found[1], "#999");
  });
}

test("refuses exactly the decoded requests with unknown fields, with the path of each field", () => {
  const fields = new UnknownFields();
  const decode = fields.decoding(TYPE, (bytes: Buffer) => ApplyResourcesRequest.decode(bytes));
  fields.assertKnown(decode(encoded()));
  const newer = decode(
    Buffer.concat([encoded(), field(999, Buffer.from("x")), field(4_000, Buffer.from("y"))]),
  );
  assert.equal(newer.applyId, "a1");
  assert.throws(() => fields.assertKnown(newer), {
    code: "INVALID",
    message: /#999, #4000/,
    violations: [
      { field: "#999", description: `field 999 of ${TYPE} is unknown to this version` },
      { field: "#4000", description: `field 4000 of ${TYPE} is unknown to this version` },
    ],
  });
});

test("finds the request types of all methods of both services by their names", () => {
  for (const definition of [ForageServiceService, OperatorServiceService])
    for (const { path } of Object.values(definition)) {
      const name = requestTypeOf(path);
      assert.ok(forestSchema[name] ?? forageSchema[name], name);
    }
});

test("ignores fields of messages of other packages", () => {
  assert.deepEqual(fieldsOf(field(3, Buffer.from("x")), "google.protobuf.Timestamp"), []);
});

test("neither hangs nor throws at malformed bytes, and keeps few violations", () => {
  const whole = Buffer.concat([encoded(), field(999, Buffer.from("x"))]);
  for (let length = 0; length < whole.length; length++) fieldsOf(whole.subarray(0, length));
  fieldsOf(Buffer.alloc(100_000, 0x0b));
  fieldsOf(Buffer.alloc(100_000, 0xff));
  const many = Buffer.concat(Array.from({ length: 10_000 }, () => field(999, Buffer.alloc(0))));
  assert.equal(fieldsOf(many).length, 20);
});
