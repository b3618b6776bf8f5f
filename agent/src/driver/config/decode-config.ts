import { Decoder } from "@msgpack/msgpack";
import { DriverError } from "../driver-error.ts";

/** A job's `config` block has some kilobytes; the limit leaves room for generated ones. */
const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_ITEMS = 10_000;

/** Decodes the msgpack of a `config` block. Empty input is an empty block. Throws INVALID for anything but one map. */
export function decodeConfig(path: string, bytes: Uint8Array): unknown {
  if (bytes.length === 0) return {};
  if (bytes.length > MAX_CONFIG_BYTES)
    throw new DriverError(
      "INVALID",
      `${path}: the configuration has ${bytes.length} bytes; at most ${MAX_CONFIG_BYTES} are accepted`,
    );
  const decoder = new Decoder({
    maxStrLength: MAX_CONFIG_BYTES,
    maxBinLength: MAX_CONFIG_BYTES,
    maxArrayLength: MAX_ITEMS,
    maxMapLength: MAX_ITEMS,
    maxExtLength: 0,
  });
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new DriverError("INVALID", `${path}: the configuration is not valid msgpack`, { cause });
  }
}

/** The number of problems that one error lists; gRPC's trailers can't hold more. */
const MAX_PROBLEMS = 20;

/** Throws INVALID with every problem, if there are any. */
export function refuseProblems(problems: readonly string[]): void {
  if (problems.length === 0) return;
  const more = problems.length - MAX_PROBLEMS;
  const lines = [...problems.slice(0, MAX_PROBLEMS), ...(more > 0 ? [`and ${more} more`] : [])];
  throw new DriverError("INVALID", lines.join("; "));
}
