import type { Cause, WhyResponse } from "@forage/proto/forage/operator/v1/operator";
import type { Paint } from "../output/paint.ts";
import { plainText } from "../output/plain-text.ts";
import { renderSection } from "../output/sections.ts";
import { eventTable } from "./events.ts";

/** Describes the causes in order, each with a remedy, followed by the latest events. */
export function describeWhy(
  { summary, healthy, causes, events }: WhyResponse,
  nowMs: number,
  paint: Paint,
): string {
  const head = `${paint(healthy ? "good" : "bad", plainText(summary))}\n`;
  const list = causes.map((cause, index) => causeText(cause, index + 1, paint)).join("");
  return `${head}${list}${renderSection("Events", eventTable(events, nowMs, paint), paint)}`;
}

function causeText({ reason, message, details, advice }: Cause, number: number, paint: Paint): string {
  const lines = [
    `${number}. ${paint("strong", plainText(reason))}: ${plainText(message)}`,
    ...details.map((detail) => `     ${plainText(detail)}`),
    ...(advice === "" ? [] : [`   → ${plainText(advice)}`]),
  ];
  return `\n${lines.join("\n")}\n`;
}
