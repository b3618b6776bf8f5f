import { SchedulerError } from "../scheduler-error.ts";
import type { LabelSelector } from "../types.ts";
import { compileRequirement, type ValueTest } from "./requirement.ts";

/** The properties of a pod that selectors match. */
export interface PodTraits {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly workload: string | undefined;
  readonly revision: string | undefined;
}

/** A predicate on pods. */
export interface PodMatcher {
  /** A key that is equal for equal matchers. */
  readonly key: string;
  /**
   * A trait (see `traitsOf`) that every matched pod has, by which an index narrows the search. Undefined if there is
   * none.
   */
  readonly trait: string | undefined;
  /** Whether the selector is `{}`, which matches no pod in spread constraints. */
  readonly empty: boolean;
  readonly test: (pod: PodTraits) => boolean;
}

/** Returns the strings by which an index finds the pod: its labels and workload. */
export function traitsOf(pod: PodTraits): string[] {
  const traits: string[] = [];
  for (const key in pod.labels) traits.push(labelTrait(key, pod.labels[key] ?? ""));
  if (pod.workload !== undefined) traits.push(workloadTrait(pod.workload));
  return traits;
}

/**
 * Returns a matcher for a selector, within the namespaces. @throws SchedulerError `invalid_pod` if the selector is
 * malformed.
 */
export function selectorMatcher(
  selector: LabelSelector | undefined,
  namespaces: readonly string[],
  revision?: string,
): PodMatcher {
  const tests = selector === undefined ? [] : compileSelector(selector);
  const inNamespace = new Set(namespaces);
  const only = namespaces.length === 1 ? namespaces[0] : undefined;
  const [label] = Object.entries(selector?.matchLabels ?? {});
  return {
    key: JSON.stringify([selector ?? null, [...namespaces].sort(), revision]),
    trait: label !== undefined ? labelTrait(...label) : undefined,
    empty: selector !== undefined && tests.length === 0,
    test: (pod) =>
      selector !== undefined &&
      (only === undefined ? inNamespace.has(pod.namespace) : pod.namespace === only) &&
      (revision === undefined || pod.revision === revision) &&
      tests.every(([key, test]) => test(pod.labels[key])),
  };
}

/** Returns a matcher for pods that all matchers match. */
export function everyMatcher(matchers: readonly PodMatcher[]): PodMatcher {
  return {
    key: `all${JSON.stringify(matchers.map((matcher) => matcher.key))}`,
    trait: matchers.find((matcher) => matcher.trait !== undefined)?.trait,
    empty: false,
    test: (pod) => matchers.every((matcher) => matcher.test(pod)),
  };
}

/** Returns a matcher for replicas of a workload, or of one revision if given. */
export function workloadMatcher(workload: string, revision: string | undefined): PodMatcher {
  return {
    key: `workload${JSON.stringify([workload, revision])}`,
    trait: workloadTrait(workload),
    empty: false,
    test: (pod) => pod.workload === workload && (revision === undefined || pod.revision === revision),
  };
}

function compileSelector(selector: LabelSelector): [string, ValueTest][] {
  const tests: [string, ValueTest][] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    tests.push([key, (actual) => actual === value]);
  }
  for (const requirement of selector.matchExpressions ?? []) {
    const ordered = requirement.operator === "Gt" || requirement.operator === "Lt";
    const test = ordered ? undefined : compileRequirement(requirement);
    if (test === undefined) {
      throw new SchedulerError(
        "invalid_pod",
        `label selector: bad requirement ${JSON.stringify(requirement)}`,
      );
    }
    tests.push([requirement.key, test]);
  }
  return tests;
}

function labelTrait(key: string, value: string): string {
  return `l\0${key}\0${value}`;
}

function workloadTrait(workload: string): string {
  return `w\0${workload}`;
}
