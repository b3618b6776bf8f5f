import type { PathMatch, RouteMatch } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import {
  headerNameProblem,
  headerValueProblem,
  matchedPathProblem,
  methodProblem,
  queryNameProblem,
} from "../syntax/http.ts";
import { regularExpressionProblem } from "../syntax/regular-expression.ts";
import { choiceProblem, controlProblem, lengthProblem } from "../syntax/text.ts";

/** The limits of the Gateway API. */
const MAX_HEADERS = 16;
const MAX_QUERY_PARAMS = 16;
const MAX_QUERY_VALUE_BYTES = 1024;

interface NamedMatch {
  readonly type: string;
  readonly name: string;
  readonly value: string;
}

export function validateMatch({ path, headers, queryParams, method }: RouteMatch, field: Field): void {
  if (path !== undefined) validatePath(path, field.at("path"));
  validateNamed(headers, MAX_HEADERS, field.at("headers"), {
    name: headerNameProblem,
    value: headerValueProblem,
    same: (name) => name.toLowerCase(),
  });
  validateNamed(queryParams, MAX_QUERY_PARAMS, field.at("query_params"), {
    name: queryNameProblem,
    value: (text) => controlProblem(text) ?? lengthProblem(text, MAX_QUERY_VALUE_BYTES),
    same: (name) => name,
  });
  field.at("method").check(methodProblem(method));
}

function validatePath({ type, value }: PathMatch, field: Field): void {
  field.at("type").check(choiceProblem(type, ["Exact", "PathPrefix", "RegularExpression"]));
  const problem =
    type === "RegularExpression"
      ? regularExpressionProblem(value)
      : value === ""
        ? undefined
        : matchedPathProblem(value);
  field.at("value").check(problem);
}

/**
 * Validates conditions on headers or query parameters. A name may have only one condition, because only one could be
 * evaluated.
 */
function validateNamed(
  matches: readonly NamedMatch[],
  max: number,
  field: Field,
  rules: {
    readonly name: (name: string) => string | undefined;
    readonly value: (value: string) => string | undefined;
    readonly same: (name: string) => string;
  },
): void {
  if (matches.length > max) field.invalid(`must be at most ${max}`);
  const seen = new Set<string>();
  for (const [index, { type, name, value }] of matches.entries()) {
    const at = field.item(index);
    at.at("type").check(choiceProblem(type, ["Exact", "RegularExpression"]));
    at.at("name").check(rules.name(name));
    if (seen.has(rules.same(name))) at.at("name").invalid("is matched twice");
    seen.add(rules.same(name));
    if (value === "") at.at("value").invalid("must not be empty");
    else
      at.at("value").check(
        type === "RegularExpression" ? regularExpressionProblem(value) : rules.value(value),
      );
  }
}
