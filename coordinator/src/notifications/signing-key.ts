import { readFile } from "node:fs/promises";
import { messageOf } from "@forage/common/message-of";
import { CoordinatorError } from "../errors.ts";

const MIN_KEY_BYTES = 16;
const MAX_KEY_BYTES = 4_096;
const LINE_FEED = 10;

/** Reads a key, without a trailing line feed. Throws INVALID. */
export async function readSigningKey(path: string): Promise<Uint8Array> {
  const text = await readFile(path).catch((cause: unknown) => {
    throw new CoordinatorError("INVALID", `the key ${path} can't be read: ${messageOf(cause)}`, { cause });
  });
  const key = text.at(-1) === LINE_FEED ? text.subarray(0, -1) : text;
  if (key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES) return key;
  throw new CoordinatorError(
    "INVALID",
    `the key ${path} has ${key.length} bytes; ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES} are allowed`,
  );
}
