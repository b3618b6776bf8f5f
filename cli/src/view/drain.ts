import type { DrainPod, WatchDrainResponse } from "@forage/proto/forage/operator/v1/operator";

/**
 * Describes the changes since the last response: pods that have left, and pods that wait for a new
 * reason.
 */
export function drainLines(before: WatchDrainResponse | undefined, now: WatchDrainResponse): string[] {
  const earlier = new Map((before?.waiting ?? []).map((pod) => [nameOf(pod), pod.why]));
  const waiting = new Set(now.waiting.map(nameOf));
  const gone = [...earlier.keys()].filter((name) => !waiting.has(name));
  return [
    ...gone.map((name) => `${name} has left`),
    ...now.waiting
      .filter((pod) => earlier.get(nameOf(pod)) !== pod.why)
      .map((pod) => `${nameOf(pod)}: ${pod.why}`),
  ];
}

export function drainSummary(node: string, { drain, staying }: WatchDrainResponse): string {
  const why = drain?.message || `the state of its drain is ${drain?.state || "unknown"}`;
  const head = drain?.state === "drained" ? `node/${node} is drained` : `node/${node} is not drained: ${why}`;
  const stay = staying.map((pod) => `${nameOf(pod)} stays: ${pod.why}`);
  return [head, ...stay].join("\n");
}

function nameOf({ namespace, name }: DrainPod): string {
  return `${namespace}/${name}`;
}
