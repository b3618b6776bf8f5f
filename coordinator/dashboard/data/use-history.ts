import { useEffect, useRef, useState } from "preact/hooks";
import type { HistoryView, PresentView } from "../../src/dashboard/history-view.ts";
import { appended, MAX_POINTS, type Points } from "../parts/plot.tsx";
import { answeredJson } from "./api.ts";

/** About as often as nodes measure their pods. */
const READ_MS = 10_000;

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

/**
 * Returns the samples that the path answers with, and the values of the times at which it was read since. So a page that is
 * open has a graph before there are two samples. Undefined until there are two points.
 */
export function useSamples<Name extends string>(path: string): Points<Name> | undefined {
  const [points, setPoints] = useState<Points<Name>>();
  useEffect(() => {
    let timer = 0;
    let gone = false;
    let read: readonly PresentView<Name>[] = [];
    const readAgain = (): void => {
      answeredJson<PresentView<Name>>(path).then(
        (view) => {
          if (gone) return;
          read = withPresent(read, view);
          setPoints(read.reduce((all, { nowMs, now }) => appended(all, nowMs / 1000, now), pointsOf(view)));
          timer = window.setTimeout(readAgain, READ_MS);
        },
        () => {
          if (!gone) timer = window.setTimeout(readAgain, READ_MS);
        },
      );
    };
    setPoints(undefined);
    readAgain();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [path]);
  return points !== undefined && points.times.length >= 2 ? points : undefined;
}

/** Returns the answers whose values are known and newer than the samples, the newest included. */
function withPresent<Name extends string>(
  before: readonly PresentView<Name>[],
  view: PresentView<Name>,
): readonly PresentView<Name>[] {
  const lastSampleSeconds = pointsOf(view).times.at(-1) ?? 0;
  return [...before, view]
    .filter(
      ({ nowMs, now }) =>
        nowMs / 1000 > lastSampleSeconds && !Object.values(now).every((value) => value === null),
    )
    .slice(-MAX_POINTS);
}

function pointsOf<Name extends string>({ startMs, intervalMs, series }: HistoryView<Name>): Points<Name> {
  const [first] = Object.values<readonly (number | null)[]>(series);
  const times = (first ?? []).map((_, index) => (startMs + index * intervalMs) / 1000);
  return { ...series, times } as Points<Name>;
}
