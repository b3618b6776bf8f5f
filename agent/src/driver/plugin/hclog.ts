import type { DriverLog } from "../tasks/open-task-driver.ts";

/** Nomad's reader splits lines at 64 KiB; this limit keeps lines far shorter. */
const MAX_VALUE_CHARACTERS = 4_000;
/** Keys of hclog itself. */
const RESERVED = /^@/;

/** Writes log lines as hclog's JSON, which Nomad merges into its own log. */
export function hclog(write: (line: string) => void, now: () => Date): DriverLog {
  return (level, event, fields = {}) => {
    const line: Record<string, unknown> = {
      "@level": level,
      "@message": event,
      "@timestamp": now().toISOString().replace(/Z$/, "000Z"),
    };
    for (const [key, value] of Object.entries(fields))
      if (value !== undefined && !RESERVED.test(key)) line[key] = toField(value);
    write(`${JSON.stringify(line)}\n`);
  };
}

function toField(value: unknown): unknown {
  if (typeof value === "number" || typeof value === "boolean") return value;
  const text =
    value instanceof Error ? textOf(value) : typeof value === "string" ? value : JSON.stringify(value);
  return (text ?? "").slice(0, MAX_VALUE_CHARACTERS).toWellFormed();
}

/** Returns the messages of the error and its causes, for an unexpected error also its stack. */
function textOf(error: Error): string {
  const cause = error.cause instanceof Error ? `; cause: ${error.cause.message}` : "";
  const isBug = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  return `${isBug ? (error.stack ?? error.message) : error.message}${cause}`;
}
