import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** @import { DescriptorProto, EnumDescriptorProto, FileDescriptorProto } from "@bufbuild/protobuf/wkt" */

// Source text of the module that server reflection reads: every .proto file in its encoded form, with the names it defines.
const HEADER = `// Generated from the .proto sources. Do not edit.

export interface FileDescriptor {
  /** As other files import it. */
  readonly name: string;
  readonly dependencies: readonly string[];
  /** Full names of the messages, enums, services and methods that the file defines. */
  readonly symbols: readonly string[];
  /** An encoded google.protobuf.FileDescriptorProto. */
  readonly base64: string;
}
`;

/** @param {Uint8Array} descriptor a FileDescriptorSet */
export function fileDescriptors(descriptor) {
  const rows = fromBinary(FileDescriptorSetSchema, descriptor).file.map((file) => {
    // Comments and positions are three quarters of the bytes, and no client of reflection needs them.
    const bytes = toBinary(FileDescriptorProtoSchema, { ...file, sourceCodeInfo: undefined });
    const row = {
      name: file.name,
      dependencies: file.dependency,
      symbols: symbolsOf(file),
      base64: Buffer.from(bytes).toString("base64"),
    };
    return `  ${JSON.stringify(row)},`;
  });
  return `${HEADER}
export const FILE_DESCRIPTORS: readonly FileDescriptor[] = [
${rows.join("\n")}
];
`;
}

/** @param {FileDescriptorProto} file @returns {string[]} */
function symbolsOf(file) {
  const services = file.service.flatMap((service) => [
    service.name,
    ...service.method.map((method) => `${service.name}.${method.name}`),
  ]);
  return [...file.messageType.flatMap(messageSymbols), ...file.enumType.map(nameOf), ...services].map(
    (name) => (file.package === "" ? name : `${file.package}.${name}`),
  );
}

/** @param {DescriptorProto} message @returns {string[]} */
function messageSymbols(message) {
  const inner = [...message.nestedType.flatMap(messageSymbols), ...message.enumType.map(nameOf)];
  return [message.name, ...inner.map((name) => `${message.name}.${name}`)];
}

/** @param {EnumDescriptorProto} type */
function nameOf(type) {
  return type.name;
}
