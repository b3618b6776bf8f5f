import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type DescMessage, type DescService, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { codecOf } from "./codec.ts";
import { buildRegistry } from "./descriptor.ts";
import { sampleOf } from "./sample.ts";

// The generated code is compared with another implementation of protobuf, which uses only the descriptor.
const types = [...(await buildRegistry())].filter((type) => type.file.proto.package !== "google.protobuf");
const messages = types.filter((type): type is DescMessage => type.kind === "message");
const services = types.filter((type): type is DescService => type.kind === "service");

describe("each codec decodes messages encoded by the other", () => {
  for (const desc of messages) {
    test(desc.typeName, async () => {
      const codec = await codecOf(desc);
      const variants = Math.max(1, ...desc.oneofs.map((oneof) => oneof.fields.length));
      for (const kind of ["typical", "extreme", "zero"] as const) {
        for (let variant = 0; variant < variants; variant++) {
          const { message, plain } = sampleOf(desc, kind, variant);
          const decoded = codec.decode(toBinary(desc, message));
          assert.deepEqual(decoded, plain, `${kind} ${variant} decoded`);
          const encoded = codec.encode(plain).finish();
          assert.ok(equals(desc, fromBinary(desc, encoded), message), `${kind} ${variant} encoded`);
        }
      }
    });
  }
});

test("an empty message stays empty: no unset field becomes set", async () => {
  for (const desc of messages) {
    const codec = await codecOf(desc);
    assert.equal(codec.encode(codec.decode(new Uint8Array())).finish().length, 0, desc.typeName);
  }
});

test("unknown fields of newer peers are skipped", async () => {
  const unknown = new BinaryWriter()
    .tag(5000, WireType.Varint)
    .uint64(2n ** 64n - 1n)
    .tag(5001, WireType.Bit64)
    .fixed64(1n)
    .tag(5002, WireType.LengthDelimited)
    .string("later")
    .tag(5003, WireType.Bit32)
    .fixed32(1)
    .finish();
  for (const desc of messages) {
    const { message, plain } = sampleOf(desc, "typical");
    const codec = await codecOf(desc);
    const decoded = codec.decode(Buffer.concat([unknown, toBinary(desc, message), unknown]));
    assert.deepEqual(decoded, plain, desc.typeName);
  }
});

describe("services are served under their names", () => {
  for (const service of services) {
    test(service.typeName, async () => {
      const module: Record<string, unknown> = await import(`../gen/${service.file.name}.ts`);
      const definition = module[`${service.name}Service`];
      assert.ok(typeof definition === "object" && definition !== null);
      const calls = Object.values(definition).map(({ path, requestStream, responseStream }) => ({
        path,
        requestStream,
        responseStream,
      }));
      const expected = service.methods.map(({ name, proto }) => ({
        path: `/${service.typeName}/${name}`,
        requestStream: proto.clientStreaming,
        responseStream: proto.serverStreaming,
      }));
      assert.deepEqual(calls, expected);
    });
  }
});
