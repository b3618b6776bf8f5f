import type { DescMessage } from "@bufbuild/protobuf";
import type { BinaryWriter } from "@bufbuild/protobuf/wire";

/** The functions that ts-proto generates for a message. */
export interface Codec {
  encode(message: unknown): BinaryWriter;
  decode(input: Uint8Array): unknown;
  fromJSON(object: unknown): unknown;
  toJSON(message: unknown): unknown;
}

export async function codecOf(desc: DescMessage): Promise<Codec> {
  const name = desc.typeName.slice(desc.file.proto.package.length + 1).replaceAll(".", "_");
  const module: Record<string, unknown> = await import(`../gen/${desc.file.name}.ts`);
  const codec = module[name];
  if (!isCodec(codec)) {
    throw new Error(`${desc.file.name}.ts has no ${name}: run npm run generate`);
  }
  return codec;
}

function isCodec(value: unknown): value is Codec {
  return typeof value === "object" && value !== null && "encode" in value && "fromJSON" in value;
}
