import { useEffect, useState } from "preact/hooks";
import type { HistoryView, PresentPoint, PresentView } from "../../src/dashboard/history-view.ts";
import { appended, type Points } from "../parts/plot.tsx";
import { followStream } from "./follow-stream.ts";

const RETRY_MS = 10_000;

/**
 * Returns the samples in the first message of the stream, and the values received since. Undefined
 * if the token may not read them, or if there are fewer than two points. While the window is hidden
 * the stream is closed.
 */
export function useSamples<Name extends string>(path: string): Points<Name> | undefined {
  const [points, setPoints] = useState<Points<Name>>();
  useEffect(() => {
    setPoints(undefined);
    return followStream(path, {
      onMessage: (data) => {
        const message = JSON.parse(data) as PresentView<Name> | PresentPoint<Name>;
        setPoints((before) => withMessage(before, message));
      },
      retryMs: RETRY_MS,
    });
  }, [path]);
  return points !== undefined && points.times.length >= 2 ? points : undefined;
}

/**
 * Adds a message to the points. The first message of a stream has all samples and replaces them.
 */
function withMessage<Name extends string>(
  before: Points<Name> | undefined,
  message: PresentView<Name> | PresentPoint<Name>,
): Points<Name> | undefined {
  const points = "series" in message ? pointsOf(message) : before;
  const { nowMs, now } = message;
  if (points === undefined || nowMs / 1000 <= (points.times.at(-1) ?? 0)) return points;
  return Object.values(now).every((value) => value === null) ? points : appended(points, nowMs / 1000, now);
}

function pointsOf<Name extends string>({ startMs, intervalMs, series }: HistoryView<Name>): Points<Name> {
  const [first] = Object.values<readonly (number | null)[]>(series);
  const times = (first ?? []).map((_, index) => (startMs + index * intervalMs) / 1000);
  return { ...series, times } as Points<Name>;
}
