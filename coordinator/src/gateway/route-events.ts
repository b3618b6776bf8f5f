import type { EventInput } from "../model/event.ts";
import type { Condition } from "./conditions.ts";
import type { Route } from "./route.ts";

/** The reasons of events for conditions that have recovered. */
const RECOVERED: Readonly<Record<Condition["type"], string>> = {
  Accepted: "Accepted",
  ResolvedRefs: "ResolvedRefs",
  CertificateReady: "CertificateReady",
  Conflicted: "ConflictOver",
  Programmed: "Programmed",
};

/**
 * Returns the events for changed conditions of a route. The progress of its gateways is not an
 * event, because it changes after each apply.
 */
export function routeEvents(
  route: Pick<Route, "kind" | "namespace" | "name">,
  before: readonly Condition[],
  after: readonly Condition[],
): EventInput[] {
  const { kind, namespace, name } = route;
  const eventOf = (type: EventInput["type"], reason: string, message: string): EventInput => {
    return { namespace, kind, name, type, reason, message: message === "" ? "is healthy" : message };
  };
  const wrongBefore = wrongOf(before);
  const wrongAfter = wrongOf(after);
  const begun = [...wrongAfter.values()].filter(({ type, reason, message }) => {
    const known = wrongBefore.get(type);
    return known?.reason !== reason || known.message !== message;
  });
  const over = [...wrongBefore.values()].filter(({ type }) => !wrongAfter.has(type));
  return [
    ...begun.map(({ reason, message }) => eventOf("Warning", reason, message)),
    ...over.map(({ type, reason, message }) =>
      eventOf("Normal", RECOVERED[type], `resolved: ${message === "" ? reason : message}`),
    ),
  ];
}

function wrongOf(conditions: readonly Condition[]): Map<Condition["type"], Condition> {
  const wrong = conditions.filter(
    ({ type, status }) => type !== "Programmed" && status !== (type !== "Conflicted"),
  );
  return new Map(wrong.map((condition) => [condition.type, condition]));
}
