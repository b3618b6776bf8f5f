import type { EventInput } from "../model/event.ts";
import type { Condition } from "./conditions.ts";
import type { Route } from "./route.ts";

/** The event reasons for conditions that have recovered. */
const RECOVERED: Readonly<Record<Condition["type"], string>> = {
  Accepted: "Accepted",
  ResolvedRefs: "ResolvedRefs",
  CertificateReady: "CertificateReady",
  Conflicted: "ConflictOver",
  Programmed: "Programmed",
};

/**
 * Returns the events of a route between two states. The progress of its gateways makes no event, because it changes after each
 * apply. Pure.
 */
export function routeEvents(
  route: Pick<Route, "kind" | "namespace" | "name">,
  before: readonly Condition[],
  after: readonly Condition[],
): EventInput[] {
  const { kind, namespace, name } = route;
  const told = (type: EventInput["type"], reason: string, message: string): EventInput => {
    return { namespace, kind, name, type, reason, message: message === "" ? "is well" : message };
  };
  const wrongBefore = wrongOf(before);
  const wrongAfter = wrongOf(after);
  const begun = [...wrongAfter.values()].filter(({ type, reason, message }) => {
    const known = wrongBefore.get(type);
    return known?.reason !== reason || known.message !== message;
  });
  const over = [...wrongBefore.values()].filter(({ type }) => !wrongAfter.has(type));
  return [
    ...begun.map(({ reason, message }) => told("Warning", reason, message)),
    ...over.map(({ type, reason, message }) =>
      told("Normal", RECOVERED[type], `resolved: ${message === "" ? reason : message}`),
    ),
  ];
}

function wrongOf(conditions: readonly Condition[]): Map<Condition["type"], Condition> {
  const wrong = conditions.filter(
    ({ type, status }) => type !== "Programmed" && status !== (type !== "Conflicted"),
  );
  return new Map(wrong.map((condition) => [condition.type, condition]));
}
