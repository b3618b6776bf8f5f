import { type EnvValue, expand, expandEnv } from "./expand-env.ts";
import type { Pod, PodContainer } from "./pod.ts";

/** What is only known on the host, once the pod has its network. */
export interface PodFacts {
  readonly nodeName: string;
  readonly podIp: string;
  readonly hostIp: string;
  /** For limits that aren't set: what the node has to give. */
  readonly allocatable: Readonly<Record<string, string>>;
}

export interface ResolvedContainer {
  readonly env: readonly EnvValue[];
  readonly command: readonly string[];
  readonly args: readonly string[];
}

/** Something it refers to doesn't exist (yet) or can't be used as it is: wait for a change. */
export interface MissingObject {
  /** A sentence, such as `secret db doesn't exist` or `secret db has no key password`. */
  readonly missing: string;
}

/** Pure. Values for env, then `$(NAME)` in command and args, as in Kubernetes. */
export function resolveContainer(
  _pod: Pod,
  container: PodContainer,
  _facts: PodFacts,
): ResolvedContainer | MissingObject {
  const values: EnvValue[] = [];
  for (const entry of container.env) {
    if (!("value" in entry)) return { missing: `env ${entry.name} can't be found out` };
    values.push(entry);
  }
  const env = expandEnv(values);
  const byName = new Map(env.map((it) => [it.name, it.value]));
  return {
    env,
    command: container.command.map((text) => expand(text, byName)),
    args: container.args.map((text) => expand(text, byName)),
  };
}
