/**
 * Loaded before a coordinator's program (`node --import`), this makes the process use the wire format of the previous
 * version: fields, enum values and methods that this version added are neither sent nor received. Bytes that a follower
 * forwards are unchanged.
 */
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Client, type MethodDefinition, Server, type ServiceDefinition } from "@grpc/grpc-js";
import { readPreviousWire } from "../../proto/test/wire-file.ts";
import { WireFilter } from "../../proto/test/wire-filter.ts";

// The test writes the descriptor, because this process must start no program: the program would load this file, too.
const descriptor = readFileSync(process.env.FORAGE_WIRE_DESCRIPTOR ?? "");
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptor));
const filter = new WireFilter(registry, await readPreviousWire());

type Method = MethodDefinition<unknown, unknown>;
type Decode = (bytes: Buffer) => unknown;
type Encode = (value: unknown) => Buffer;

/** Returns the types of a method's messages; `undefined` for methods that aren't Forage's. */
function typesOf(path: string): { readonly input: string; readonly output: string } | undefined {
  const [, service = "", name = ""] = path.split("/");
  const method = registry.getService(service)?.methods.find((each) => each.name === name);
  return method && { input: method.input.typeName, output: method.output.typeName };
}

function decoding(decode: Decode, type: string): Decode {
  return isPassed(decode) ? decode : (bytes) => decode(Buffer.from(filter.filter(type, bytes)));
}

function encoding(encode: Encode, type: string): Encode {
  return isPassed(encode) ? encode : (value) => Buffer.from(filter.filter(type, encode(value)));
}

function isPassed({ name }: Decode | Encode): boolean {
  return name === "asIs";
}

const addService = Server.prototype.addService;
Server.prototype.addService = function (definition, implementation): void {
  const methods = Object.entries(definition as Record<string, Method>).flatMap(([name, method]) => {
    const types = typesOf(method.path);
    if (types === undefined) return [[name, method] as const];
    if (!filter.hasMethod(method.path)) return [];
    const requestDeserialize = decoding(method.requestDeserialize, types.input);
    const responseSerialize = encoding(method.responseSerialize, types.output);
    return [[name, { ...method, requestDeserialize, responseSerialize }] as const];
  });
  // The list of the previous version does not include services of libraries.
  const served = methods.length === 0 ? definition : Object.fromEntries(methods);
  addService.call(this, served as ServiceDefinition, implementation);
};

for (const name of [
  "makeUnaryRequest",
  "makeClientStreamRequest",
  "makeServerStreamRequest",
  "makeBidiStreamRequest",
] as const) {
  const make = Client.prototype[name] as (...given: unknown[]) => unknown;
  Object.assign(Client.prototype, {
    [name](this: Client, path: string, encode: Encode, decode: Decode, ...more: unknown[]): unknown {
      const types = typesOf(path);
      if (types === undefined) return make.call(this, path, encode, decode, ...more);
      return make.call(this, path, encoding(encode, types.input), decoding(decode, types.output), ...more);
    },
  });
}
