import type { EnvEntry, ObjectContent, Pod, PodContainer, PodObjects } from "../pod.ts";
import type { PodFacts } from "../pod-facts.ts";
import { type EnvValue, expand, expandEnv, type UnexpandedEnv } from "./expand-env.ts";
import { podField } from "./pod-field.ts";
import { resourceField } from "./resource-field.ts";

export interface ResolvedContainer {
  readonly env: readonly EnvValue[];
  readonly command: readonly string[];
  readonly args: readonly string[];
}

/**
 * A referenced object that does not exist yet or can't be used in its present form. The pod waits until the object
 * changes.
 */
export interface MissingObject {
  /**
   * A sentence such as `secret db doesn't exist` or `secret db has no key password`. Never contains the object's data.
   */
  readonly missing: string;
}

/** The reason why a variable has no value. */
class Unresolved extends Error {}

// The kernel rejects a longer `NAME=VALUE` (MAX_ARG_STRLEN, with its final NUL).
const VARIABLE_BYTES_MAX = 128 * 1024 - 1;

/** Returns the container with the values of its variables, and with `$(NAME)` replaced in command and arguments, as in Kubernetes. Pure. */
export function resolveContainer(
  pod: Pod,
  container: PodContainer,
  facts: PodFacts,
): ResolvedContainer | MissingObject {
  try {
    const env = expandEnv(container.env.map((entry) => envValue(entry, pod, container, facts)));
    const byName = new Map(env.map((it) => [it.name, it.value]));
    return {
      env,
      command: container.command.map((text) => expand(text, byName)),
      args: container.args.map((text) => expand(text, byName)),
    };
  } catch (error) {
    if (error instanceof Unresolved) return { missing: error.message };
    throw error;
  }
}

function envValue(entry: EnvEntry, pod: Pod, container: PodContainer, facts: PodFacts): UnexpandedEnv {
  const { name } = entry;
  if ("value" in entry) return entry;
  if ("secret" in entry) return literal(name, contentOf("secret", entry.secret, entry.key, pod.objects));
  if ("config" in entry) return literal(name, contentOf("config_map", entry.config, entry.key, pod.objects));
  const isField = "field" in entry;
  const value = isField
    ? podField(entry.field, pod, facts)
    : resourceField(entry.resourceField, container, facts.allocatable);
  const what = isField ? entry.field : entry.resourceField;
  if (value === undefined) throw new Unresolved(`env ${name}: there is no field ${what}`);
  return literal(name, value);
}

function literal(name: string, value: string): UnexpandedEnv {
  if (Buffer.byteLength(name) + 1 + Buffer.byteLength(value) <= VARIABLE_BYTES_MAX) {
    return { name, value, literal: true };
  }
  throw new Unresolved(
    `env ${name}: longer than the ${VARIABLE_BYTES_MAX} bytes that a process can be given`,
  );
}

type Kind = "secret" | "config_map";

function contentOf(kind: Kind, name: string, key: string, objects: PodObjects | undefined): string {
  const title = `${kind === "secret" ? "secret" : "config map"} ${name}`;
  const object = findObject(kind, name, objects);
  if (object === undefined) throw new Unresolved(`${title} doesn't exist`);
  const content = object.data.get(key);
  if (content === undefined) throw new Unresolved(`${title} has no key ${key}`);
  if (content.includes(0)) throw new Unresolved(`${title}: key ${key} holds a NUL byte, which env can't`);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw new Unresolved(`${title}: key ${key} is not UTF-8 text, which env has to be; mount it as a volume`);
  }
}

/**
 * Returns the version of the object that this revision of the workload is pinned to, or the current one if it is not
 * pinned.
 */
function findObject(kind: Kind, name: string, objects: PodObjects | undefined): ObjectContent | undefined {
  const all = (kind === "secret" ? objects?.secrets : objects?.configMaps) ?? [];
  const version = objects?.envVersions[`${kind}/${name}`];
  return all.find((it) => it.name === name && (version === undefined ? it.current : it.version === version));
}
