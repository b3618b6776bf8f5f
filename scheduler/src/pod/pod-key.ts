import type { PodKey } from "../types.ts";

export function podKey(pod: { readonly namespace: string; readonly name: string }): PodKey {
  return `${pod.namespace}/${pod.name}`;
}
