import type { Event } from "@forage/proto/forage/operator/v1/operator";
import type { Paint, Style } from "../output/paint.ts";
import { plainText } from "../output/plain-text.ts";
import { type Column, renderTable } from "../output/table.ts";
import { age, dateTime } from "./timestamp.ts";

export function eventColumns({
  nowMs,
  withNamespace,
}: {
  readonly nowMs: number;
  readonly withNamespace: boolean;
}): Column<Event>[] {
  const namespace: Column<Event> = { title: "NAMESPACE", value: (event) => event.namespace };
  return [
    { title: "LAST", value: (event) => age(event.lastAt, nowMs), alignRight: true },
    ...(withNamespace ? [namespace] : []),
    { title: "TYPE", value: ({ type }) => type, style: eventStyle },
    { title: "REASON", value: ({ reason }) => reason },
    { title: "ABOUT", value: ({ kind, name }) => `${kind}/${name}` },
    { title: "NODE", value: ({ node }) => node, wide: true },
    { title: "ROLLOUT", value: ({ rolloutId }) => rolloutId, wide: true },
    { title: "FIRST", value: (event) => age(event.firstAt, nowMs), alignRight: true, wide: true },
    { title: "COUNT", value: ({ count }) => String(count), alignRight: true },
    { title: "MESSAGE", value: ({ message }) => message },
  ];
}

/** Formats an event as one line of a stream, whose later lines can't be aligned with it. */
export function eventLine(event: Event, withNamespace: boolean, paint: Paint): string {
  const { type, reason, kind, name, message, count } = event;
  const about = `${withNamespace && event.namespace !== "" ? `${event.namespace}/` : ""}${kind}/${name}`;
  const style = eventStyle(event);
  const word = type.padEnd("Warning".length);
  const times = count > 1 ? ` (${count} times)` : "";
  const text = plainText(`${reason}  ${about}: ${message}${times}`);
  return `${dateTime(event.lastAt)}  ${style === undefined ? word : paint(style, word)}  ${text}\n`;
}

/** Renders a table of the newest events of one object. */
export function eventTable(events: readonly Event[], nowMs: number, paint: Paint): string {
  if (events.length === 0) return "";
  return renderTable(eventColumns({ nowMs, withNamespace: false }), events, { wide: false, paint });
}

function eventStyle({ type }: Event): Style | undefined {
  return type === "Warning" ? "bad" : undefined;
}
