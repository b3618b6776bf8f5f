import { useEffect, useRef, useState } from "preact/hooks";
import type { HistoryView } from "../../src/dashboard/history-view.ts";
import { appended, type Points } from "../parts/plot.tsx";
import { answeredJson } from "./api.ts";

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
        const [first] = Object.values<readonly number[]>(series);
        const times = (first ?? []).map((_, index) => (startMs + index * intervalMs) / 1000);
        setPoints(add({ ...series, times } as Points<Name>));
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
