import { useEffect, useRef, useState } from "preact/hooks";
import type { HistoryView } from "../../src/dashboard/history-view.ts";
import { appended, type Points } from "../parts/plot.tsx";
import { answeredJson } from "./api.ts";

const RETRY_MS = 60_000;

/**
 * Returns the coordinator's samples of the last hours, which come once, and later points that `present` takes from the live tables.
 * Undefined without the right to them, and until there are two points.
 */
export function useHistory<Name extends string>(
  path: string,
  present: () => Readonly<Record<Name, number>> | undefined,
): Points<Name> | undefined {
  const [points, setPoints] = useState<Points<Name>>();
  const now = useRef(present);
  now.current = present;
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const add = (before: Points<Name>): Points<Name> => {
      const values = now.current();
      return values === undefined ? before : appended(before, Date.now() / 1000, values);
    };
    answeredJson<HistoryView<Name>>(path).then(
      ({ startMs, intervalMs, series }) => {
        if (gone) return;
        setPoints(add(pointsOf({ startMs, intervalMs, series })));
        timer = window.setInterval(() => setPoints((before) => before && add(before)), intervalMs);
      },
      () => undefined,
    );
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [path]);
  return points !== undefined && points.times.length >= 2 ? points : undefined;
}

/** Returns the samples of a node or pod, read again for each new one. Undefined until there are two. */
export function useSamples<Name extends string>(path: string): Points<Name> | undefined {
  const [points, setPoints] = useState<Points<Name>>();
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const read = (): void => {
      answeredJson<HistoryView<Name>>(path).then(
        (view) => {
          if (gone) return;
          setPoints(pointsOf(view));
          timer = window.setTimeout(read, view.intervalMs);
        },
        () => {
          if (!gone) timer = window.setTimeout(read, RETRY_MS);
        },
      );
    };
    setPoints(undefined);
    read();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [path]);
  return points !== undefined && points.times.length >= 2 ? points : undefined;
}

function pointsOf<Name extends string>({ startMs, intervalMs, series }: HistoryView<Name>): Points<Name> {
  const [first] = Object.values<readonly (number | null)[]>(series);
  const times = (first ?? []).map((_, index) => (startMs + index * intervalMs) / 1000);
  return { ...series, times } as Points<Name>;
}
