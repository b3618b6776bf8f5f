import { type MonotonicClock, pause } from "@forage/common/clock";
import type { PresentPoint, PresentView } from "./history-view.ts";

/** The interval at which the newest values are compared. */
const READ_MS = 2_000;
/** The time after which unchanged values are sent again, so that the line of a graph continues. */
const SAME_MS = 10_000;

/** Yields all samples, and then the newest values whenever they change, as JSON. */
export async function* sampleFeed<Name extends string>(
  read: () => PresentView<Name>,
  clock: MonotonicClock,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const first = read();
  yield JSON.stringify(first);
  let sent: PresentPoint<Name> = first;
  while (!signal.aborted) {
    await pause(clock, READ_MS, signal);
    const { nowMs, now } = read();
    const isLater = nowMs > sent.nowMs;
    const isOther = nowMs - sent.nowMs >= SAME_MS || !isSame(now, sent.now);
    if (signal.aborted || !isLater || !isOther) continue;
    sent = { nowMs, now };
    yield JSON.stringify(sent);
  }
}

function isSame<Name extends string>(
  a: Readonly<Record<Name, number | null>>,
  b: Readonly<Record<Name, number | null>>,
): boolean {
  return (Object.keys(a) as Name[]).every((name) => a[name] === b[name]);
}
