import type { LogChunk } from "./log-file.ts";
import type { WriteTime } from "./write-times.ts";

const LINE_BREAK = 0x0a;

/** Prefixes each line with the time at which its first byte arrived. */
export async function* stampLines(
  pieces: AsyncIterable<LogChunk>,
  arrivalAt: (position: number) => Promise<WriteTime | undefined>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let atLineStart = true;
  let known: { readonly end: number; readonly stamp: Buffer } | undefined;
  for await (const { data, position } of pieces) {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < data.length; ) {
      if (atLineStart) {
        if (known === undefined || position + at >= known.end) {
          const arrival = await arrivalAt(position + at);
          known = { end: arrival?.end ?? position + at + 1, stamp: Buffer.from(`${stampOf(arrival)} `) };
        }
        parts.push(known.stamp);
      }
      const lineBreak = data.indexOf(LINE_BREAK, at);
      const next = lineBreak < 0 ? data.length : lineBreak + 1;
      parts.push(data.subarray(at, next));
      atLineStart = lineBreak >= 0;
      at = next;
    }
    yield Buffer.concat(parts);
  }
}

function stampOf(arrival: WriteTime | undefined): string {
  if (arrival === undefined) return "-";
  const at = new Date(arrival.atMs).toISOString();
  return arrival.fromMs === undefined ? at : `${new Date(arrival.fromMs).toISOString()}/${at}`;
}
