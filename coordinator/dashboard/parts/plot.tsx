import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clockTimes } from "../data/format.ts";

/** The values of a line; null is an unknown value and makes a gap. */
type Values = readonly (number | null)[];

export interface PlotProps {
  readonly title: string;
  /** The times of the values, in seconds since the epoch. */
  readonly times: readonly number[];
  /** The lines of the graph. The area under the first one is filled. */
  readonly lines: readonly { readonly name: string; readonly values: Values }[];
  readonly text: (value: number) => string;
  /** The least maximum of the vertical axis, so that a line of zeros has a scale. Default: 1. */
  readonly leastTop?: number;
}

const HEIGHT_PX = 140;
const TIME_AXIS_PX = 28;
/**
 * The width of one label on the time axis, with and without seconds. It avoids overlapping labels
 * on a phone.
 */
const SECONDS_LABEL_PX = 72;
const MINUTES_LABEL_PX = 48;
const SECONDS_PER_MINUTE = 60;
export const MAX_POINTS = 480;
const COLOURS = ["#2e9e5b", "#b7791f"] as const;
/** Dash patterns, which distinguish lines without colour. */
const DASHES = [[], [6, 4]] as const;

/** A graph over time. Its label contains the last values for users of screen readers. */
export function Plot({ title, times, lines, text, leastTop = 1 }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const names = lines.map(({ name }) => name).join();
  const last = lines
    .map(({ name, values }) => `${lines.length > 1 ? `${name} ` : ""}${lastOf(values, text)}`)
    .join(", ");
  const data: uPlot.AlignedData = [[...times], ...lines.map(({ values }) => [...values])];
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsOf({ names, text, leastTop, width: element.clientWidth }), data, element);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resized.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = (): void => made.redraw();
    dark.addEventListener("change", redraw);
    return () => {
      dark.removeEventListener("change", redraw);
      resized.disconnect();
      made.destroy();
    };
  }, [names, text, leastTop]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [times, lines]);
  return (
    <figure class="card graph" aria-label={`${title}: ${last} now`}>
      <figcaption>
        {title} <small>{last} now</small>
      </figcaption>
      <div ref={box} aria-hidden="true" />
    </figure>
  );
}

function lastOf(values: Values, text: PlotProps["text"]): string {
  const last = values.at(-1);
  return last === undefined || last === null ? "not known" : text(last);
}

function optionsOf({
  names,
  text,
  leastTop,
  width,
}: {
  readonly names: string;
  readonly text: PlotProps["text"];
  readonly leastTop: number;
  readonly width: number;
}): uPlot.Options {
  // The colour is read at each drawing, because the system may switch to dark mode.
  const stroke = (): string => getComputedStyle(document.body).color;
  const axis = { stroke, grid: { stroke: "#8884", width: 1 }, ticks: { show: false } };
  const line = (index: number): uPlot.Series => ({
    stroke: COLOURS[index] ?? COLOURS[0],
    dash: [...(DASHES[index] ?? [])],
    ...(index === 0 && { fill: `${COLOURS[0]}33` }),
    width: 2,
    points: { show: false },
  });
  return {
    width,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { y: false },
    scales: { y: { range: (_, __, max) => [0, Math.max((max ?? 0) * 1.1, leastTop)] } },
    axes: [
      {
        ...axis,
        space: (_, __, from, to, width) =>
          ((to - from) / width) * MINUTES_LABEL_PX < SECONDS_PER_MINUTE ? SECONDS_LABEL_PX : MINUTES_LABEL_PX,
        size: TIME_AXIS_PX,
        values: (_, seconds, __, ___, step) => clockTimes(seconds, step),
      },
      { ...axis, size: 60, values: (_, ticks) => ticks.map(text) },
    ],
    series: [{}, ...names.split(",").map((_, index) => line(index))],
  };
}

/** The points of a graph: times in seconds, and the values of each series. */
export type Points<Name extends string> = Readonly<Record<Name, Values>> & {
  readonly times: readonly number[];
};

/** Returns the points with one more, without the oldest if there are too many. */
export function appended<Name extends string>(
  before: Points<Name>,
  time: number,
  now: Readonly<Record<Name, number | null>>,
): Points<Name> {
  const names = Object.keys(now) as Name[];
  const values = names.map((name) => [name, [...before[name], now[name]].slice(-MAX_POINTS)]);
  return { ...Object.fromEntries(values), times: [...before.times, time].slice(-MAX_POINTS) } as Points<Name>;
}
