import type { Clock } from "../clock.ts";
import { EntryLines } from "./entry-lines.ts";
import { findLastEntries } from "./last-entries.ts";
import type { LogStream } from "./log-entry.ts";
import type { LogFile } from "./log-file.ts";
import { type TailOptions, tailLog } from "./tail.ts";

export interface TailEntriesOptions extends Omit<TailOptions, "upTo" | "tellIdle"> {
  readonly stream?: LogStream;
  /** Leaves out older lines. Milliseconds since the epoch. */
  readonly sinceMs?: number;
  readonly timestamps?: boolean;
}

/** Like {@link tailLog}, for a log with separate streams. Yields the lines as the container wrote them. */
export async function* tailEntries(
  file: LogFile,
  clock: Clock,
  options: TailEntriesOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { lines, from: given = Number.NEGATIVE_INFINITY, stream, sinceMs, timestamps, ...rest } = options;
  const from = lines === undefined ? undefined : await findLastEntries(file, lines, stream);
  const first = from === undefined ? given : Math.max(given, Math.min(from.stdout, from.stderr));
  const out = new EntryLines({
    ...(stream !== undefined && { stream }),
    ...(sinceMs !== undefined && { since: new Date(sinceMs).toISOString() }),
    ...(timestamps !== undefined && { timestamps }),
    ...(from && { from }),
  });
  let idle = 0;
  for await (const { data, position } of tailLog(file, clock, { ...rest, from: first, notifyIdle: true })) {
    idle = data.length > 0 ? 0 : idle + 1;
    const shown = data.length > 0 ? out.add(data, position) : NOTHING;
    if (shown.length > 0) yield shown;
    // A line may continue in a moment, and the other stream's line must not come in between. A prompt never continues.
    if (idle > (stream === undefined ? 1 : 0)) {
      const unfinished = out.flush();
      if (unfinished.length > 0) yield unfinished;
    }
  }
  const last = out.flush();
  if (last.length > 0) yield last;
}

const NOTHING = Buffer.alloc(0);
