import type { InlineRoute, RouteRule, RouteSpec, RouteTls } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { hostnamePatternProblem } from "../syntax/hosts.ts";
import { dnsLabelProblem, dnsSubdomainProblem } from "../syntax/names.ts";
import { choiceProblem } from "../syntax/text.ts";
import { isRedirect } from "./filter.ts";
import { validateRule } from "./rule.ts";

/** The limit of hostnames, because every request is compared with each of them. */
const MAX_HOSTNAMES = 64;
const MAX_RULES = 128;

export function validateRoute(spec: RouteSpec, field: Field): void {
  const { targetService, gatewayRef, rules } = spec;
  if (targetService !== "" || rules.length === 0 || rules.some(needsTarget))
    field.at("target_service").check(dnsLabelProblem(targetService));
  if (gatewayRef !== "") field.at("gateway_ref").check(dnsSubdomainProblem(gatewayRef));
  validateInlineRoute(spec, field);
}

/** Validates the common part of routes and inline routes. */
export function validateInlineRoute(
  { hostnames, rules, tls }: Pick<InlineRoute, "hostnames" | "rules" | "tls">,
  field: Field,
): void {
  validateHostnames(hostnames, field.at("hostnames"));
  if (rules.length > MAX_RULES)
    field.at("rules").invalid(`must be at most ${MAX_RULES}, but ${rules.length} were given`);
  for (const [index, rule] of rules.entries()) validateRule(rule, field.at("rules").item(index));
  if (tls !== undefined) validateTls(tls, rules, field);
}

function needsTarget({ backends, filters }: RouteRule): boolean {
  return backends.length === 0 && !filters.some(isRedirect);
}

function validateHostnames(hostnames: readonly string[], field: Field): void {
  if (hostnames.length > MAX_HOSTNAMES)
    field.invalid(`must be at most ${MAX_HOSTNAMES}, but ${hostnames.length} were given`);
  const seen = new Set<string>();
  for (const [index, hostname] of hostnames.entries()) {
    field.item(index).check(hostnamePatternProblem(hostname));
    if (seen.has(hostname)) field.item(index).invalid("is listed twice");
    seen.add(hostname);
  }
}

/** Validates TLS settings. With Passthrough, requests are encrypted, so rules must not depend on their content. */
function validateTls({ mode, certificateRef }: RouteTls, rules: readonly RouteRule[], field: Field): void {
  const tls = field.at("tls");
  tls.at("mode").check(choiceProblem(mode, ["Terminate", "Passthrough"]));
  if (certificateRef !== "") tls.at("certificate_ref").check(dnsSubdomainProblem(certificateRef));
  if (mode !== "Passthrough") return;
  if (certificateRef !== "") tls.at("certificate_ref").invalid("has no effect when the mode is Passthrough");
  for (const [index, { matches, filters, timeout }] of rules.entries()) {
    const rule = field.at("rules").item(index);
    const why = "must not be set when TLS is passed through: requests are encrypted";
    if (matches.length > 0) rule.at("matches").invalid(why);
    if (filters.length > 0) rule.at("filters").invalid(why);
    if (timeout !== undefined) rule.at("timeout").invalid(why);
  }
}
