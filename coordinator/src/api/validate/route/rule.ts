import type { RouteBackend, RouteRule } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { durationProblem } from "../syntax/duration.ts";
import { dnsLabelProblem } from "../syntax/names.ts";
import { portProblem, rangeProblem } from "../syntax/numbers.ts";
import { isRedirect, validateFilters } from "./filter.ts";
import { validateMatch } from "./match.ts";

/** The limits of the Gateway API. */
const MAX_MATCHES = 64;
const MAX_BACKENDS = 16;
/** The longest time-out of a request in seconds. */
const MAX_TIMEOUT_SECONDS = 86_400;

export function validateRule(rule: RouteRule, field: Field): void {
  const { matches, backends, filters, timeout } = rule;
  if (matches.length > MAX_MATCHES) field.at("matches").invalid(`must be at most ${MAX_MATCHES}`);
  for (const [index, match] of matches.entries()) validateMatch(match, field.at("matches").item(index));
  if (backends.length > MAX_BACKENDS) field.at("backends").invalid(`must be at most ${MAX_BACKENDS}`);
  for (const [index, backend] of backends.entries())
    validateBackend(backend, field.at("backends").item(index));
  if (backends.length > 0 && filters.some(isRedirect))
    field.at("backends").invalid("must be empty when requests are redirected");
  validateFilters(filters, matches, field.at("filters"));
  if (timeout !== undefined) field.at("timeout").check(durationProblem(timeout, MAX_TIMEOUT_SECONDS));
}

function validateBackend({ service, port, weight }: RouteBackend, field: Field): void {
  field.at("service").check(dnsLabelProblem(service));
  field.at("port").check(portProblem(port));
  // 0 means no weight: no share beside weighted backends, and an equal share if no backend has a weight.
  field.at("weight").check(rangeProblem(weight, 0, 100) && "must be from 1 to 100");
}
