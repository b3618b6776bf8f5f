/** The writer that generated messages are encoded to, for bytes that stand before a message. */
export { BinaryWriter } from "@bufbuild/protobuf/wire";
