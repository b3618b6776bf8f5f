import { isMap, isScalar, isSeq, type ParsedNode, type YAMLMap } from "yaml";
import { findPair } from "./document.ts";
import type { BundleOrigins, Origin } from "./origin.ts";
import type { Problem } from "./problem.ts";

/**
 * A field that the coordinator refused, with its path, such as
 * `resources[0].container_service.container.image`, and the reason.
 */
interface Violation {
  readonly field: string;
  readonly description: string;
}

/** Finds the position of a violation in the manifest; undefined if it concerns no document. */
export function locate(bundle: BundleOrigins, { field, description }: Violation): Problem | undefined {
  const steps = splitPath(field);
  const [first, index, ...rest] = steps;
  if (first === "resources" && typeof index === "number") {
    const origin = bundle.resources[index];
    return origin === undefined ? undefined : follow(origin, rest, description);
  }
  return bundle.header === undefined ? undefined : follow(bundle.header, steps, description, field);
}

/**
 * Follows the path as far as it exists in the source. A missing field is located at the key of its
 * parent.
 */
function follow(origin: Origin, steps: readonly Step[], message: string, path?: string): Problem {
  const { document } = origin;
  if (origin.isConverted === true) {
    const field = path ?? steps.reduce<string>((text, step) => text + formatStep(step, text === ""), "");
    return { position: document.positionOf(origin.node), path: origin.path, message: `${field}: ${message}` };
  }
  let found: Found = { value: origin.node, place: origin.node };
  let complete = true;
  for (const step of steps) {
    const next = child(document.resolve(found.value), step);
    complete = next !== undefined;
    if (next === undefined) break;
    found = next;
  }
  const shown =
    path ?? steps.reduce<string>((text, step) => text + formatStep(step, text === ""), origin.path);
  const isValue = complete && isScalar(document.resolve(found.value));
  return { position: document.positionOf(isValue ? found.value : found.place), path: shown, message };
}

interface Found {
  readonly value: ParsedNode;
  /** The node of the key, or the item itself in a list. */
  readonly place: ParsedNode;
}

type Step = string | number;

/** Splits a path into steps: `a_b[0].c["d.e"]` becomes `a_b`, 0, `c`, `d.e`. */
export function splitPath(path: string): Step[] {
  const steps: Step[] = [];
  for (const [, name, index, quoted, bare] of path.matchAll(
    /([^.[\]]+)|\[(?:(\d+)|"((?:[^"\\]|\\.)*)"|([^\]]*))\]/g,
  )) {
    if (name !== undefined) steps.push(name);
    else if (index !== undefined) steps.push(Number(index));
    else steps.push(quoted?.replaceAll(/\\(.)/g, "$1") ?? bare ?? "");
  }
  return steps;
}

function child(node: ParsedNode | undefined, step: Step): Found | undefined {
  if (isSeq(node)) {
    const item = typeof step === "number" ? (node.items[step] as ParsedNode | undefined) : undefined;
    return item === undefined || item === null ? undefined : { value: item, place: item };
  }
  if (!isMap(node)) return undefined;
  const pair = findPair(node as YAMLMap.Parsed, [String(step), camelCase(String(step))]);
  return pair === undefined ? undefined : { value: pair.value ?? pair.key, place: pair.key };
}

function formatStep(step: Step, first: boolean): string {
  if (typeof step === "number") return `[${step}]`;
  if (!/^\w+$/.test(step)) return `[${JSON.stringify(step)}]`;
  return first ? step : `.${step}`;
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
