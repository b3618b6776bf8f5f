import { closeSync, openSync, readSync } from "node:fs";
import type { Architecture } from "../lib/architecture.ts";
import { SetupError } from "../lib/setup-error.ts";
import type { Entry } from "./entry.ts";

const HEADER_BYTES = 20;
const MAGIC = Buffer.from([0x7f, 0x45, 0x4c, 0x46]);
/** The offset of the field `e_machine` in ELF's specification. */
const MACHINE_AT = 18;
const MACHINES: Readonly<Record<Architecture, number>> = { amd64: 62, arm64: 183 };

/** Throws unless every compiled program and library among the files is for the architecture. */
export function assertArchitecture(entries: readonly Entry[], architecture: Architecture): void {
  for (const { path, source } of entries) {
    if (source.type !== "file") continue;
    const machine = elfMachine(headOf(source.path));
    if (machine === undefined || machine === MACHINES[architecture]) continue;
    throw new SetupError(
      "NOT_READY",
      `${source.path} is compiled for another machine (ELF number ${machine}), and a package for ${architecture} can't contain it as /${path}`,
      "remove the file, or run npm ci if it is in node_modules, and build the packages again",
    );
  }
}

/** Returns the machine number of a compiled file from its first bytes; `undefined` if it is not an ELF file. */
export function elfMachine(head: Buffer): number | undefined {
  if (head.length < HEADER_BYTES || !head.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  // Both architectures are little-endian.
  return head.readUInt16LE(MACHINE_AT);
}

function headOf(path: string): Buffer {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(HEADER_BYTES);
    return head.subarray(0, readSync(file, head, 0, HEADER_BYTES, 0));
  } finally {
    closeSync(file);
  }
}
