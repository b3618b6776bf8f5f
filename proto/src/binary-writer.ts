/** The writer that generated messages are encoded to, for prefixing a message with other bytes. */
export { BinaryWriter } from "@bufbuild/protobuf/wire";
