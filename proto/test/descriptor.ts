import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

// The descriptor has 200 kB.
const MAX_DESCRIPTOR_BYTES = 16 * 1024 * 1024;

/** Compiles the current .proto sources, whether or not gen/ is up to date. */
export async function buildDescriptor(): Promise<FileDescriptorSet> {
  const { stdout } = await promisify(execFile)(
    createRequire(import.meta.url).resolve("@bufbuild/buf/bin/buf"),
    ["build", "--as-file-descriptor-set", "--output", "-"],
    { cwd: dirname(import.meta.dirname), encoding: "buffer", maxBuffer: MAX_DESCRIPTOR_BYTES },
  );
  return fromBinary(FileDescriptorSetSchema, stdout);
}

export async function buildRegistry(): Promise<FileRegistry> {
  return createFileRegistry(await buildDescriptor());
}
