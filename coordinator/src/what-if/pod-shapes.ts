import { type PodSpec, podRequests } from "@forage/scheduler";
import { podSpecOf } from "../model/pod-spec.ts";
import type { PodEntry } from "../state/entries.ts";

/**
 * The rules for a pod's placement. "plain" rules concern one node and its free amounts. "spaced"
 * rules also concern host ports or other pods on the same node. "other" rules concern pods or data
 * on other nodes.
 */
export type PodRules = "plain" | "spaced" | "other";

/** The common properties of pods with the same template and priority. */
export interface PodShape {
  readonly spec: PodSpec;
  /** The requests by resource in the scheduler's units, including one of `pods`. */
  readonly requests: ReadonlyMap<string, number>;
  readonly rules: PodRules;
  /** The names of nodes that the pod selects or avoids by name. */
  readonly namedNodes: readonly string[];
}

/** Computes shapes, and caches them. */
export class PodShapes {
  readonly #shapes = new Map<string, PodShape>();

  of(pod: PodEntry): PodShape {
    const { templateHash, priority, neverPreempts } = pod.record;
    const key = `${pod.workloadKey} ${templateHash} ${priority} ${neverPreempts}`;
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      shape = shapeOf(pod);
      this.#shapes.set(key, shape);
    }
    return shape;
  }
}

function shapeOf(pod: PodEntry): PodShape {
  const spec = podSpecOf(pod.record);
  const hasClaims = pod.refs.some(({ kind }) => kind === "claim");
  try {
    const requests = new Map([...podRequests(spec), ["pods", 1] as const]);
    return { spec, requests, rules: hasClaims ? "other" : rulesOf(spec), namedNodes: namedNodesOf(spec) };
  } catch {
    // The scheduler counts a bound pod with unparsable amounts as one pod, and places no further
    // pods like it.
    return { spec, requests: new Map([["pods", 1]]), rules: "other", namedNodes: namedNodesOf(spec) };
  }
}

const HOSTNAME_KEYS: ReadonlySet<string> = new Set(["kubernetes.io/hostname", "hostname"]);

function rulesOf({ podAffinity, podAntiAffinity, topologySpread = [], containers }: PodSpec): PodRules {
  const apart = podAntiAffinity?.required ?? [];
  const isTied =
    (podAffinity?.required ?? []).length > 0 ||
    topologySpread.some(({ whenUnsatisfiable }) => whenUnsatisfiable === "DoNotSchedule") ||
    apart.some(({ topologyKey }) => !HOSTNAME_KEYS.has(topologyKey));
  if (isTied) return "other";
  const hasPorts = containers.some(({ hostPorts = [] }) => hostPorts.length > 0);
  return apart.length > 0 || hasPorts ? "spaced" : "plain";
}

function namedNodesOf({ nodeSelector = {}, nodeAffinity }: PodSpec): string[] {
  const terms = [
    ...(nodeAffinity?.required ?? []),
    ...(nodeAffinity?.preferred ?? []).map(({ preference }) => preference),
  ];
  const selected = Object.entries(nodeSelector).flatMap(([key, value]) =>
    HOSTNAME_KEYS.has(key) ? [value] : [],
  );
  const demanded = terms.flatMap(({ matchExpressions = [], matchFields = [] }) => [
    ...matchExpressions.filter(({ key }) => HOSTNAME_KEYS.has(key)),
    ...matchFields,
  ]);
  return [...selected, ...demanded.flatMap(({ values = [] }) => values)];
}
