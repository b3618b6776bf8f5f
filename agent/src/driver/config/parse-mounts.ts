import { PROPAGATIONS, parseAbsolutePath, parsePropagation, parseSize } from "./parse-values.ts";
import { type Section, shown } from "./section.ts";
import type { MountPropagation, TaskMount } from "./task-options.ts";

const VOLUME_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/** Reads one `mounts` block. */
export function readMount(block: Section): readonly TaskMount[] {
  const type = block.parsed("type", mountType) ?? (block.has("type") ? undefined : "bind");
  const target = block.parsed("target", parseTarget);
  if (!block.has("target")) block.problem("target", "is required");
  const readonly = block.flag("readonly", false);
  const propagation = block.parsed("propagation", parsePropagation);
  const sizeBytes = block.parsed("size", parseSize);
  const refuse = (name: string, only: string): void => {
    if (block.has(name)) block.problem(name, `is for mounts of type ${only} only`);
  };
  if (type !== "bind") refuse("propagation", "bind");
  if (type !== "tmpfs") refuse("size", "tmpfs");
  if (type === "tmpfs") {
    refuse("source", "bind and volume");
    if (readonly) block.problem("readonly", "is for mounts of type bind and volume only");
    return target === undefined ? [] : [{ type, target, ...(sizeBytes !== undefined && { sizeBytes }) }];
  }
  if (!block.has("source")) block.problem("source", "is required");
  const source = block.parsed("source", type === "volume" ? parseVolumeName : parseSource);
  if (type === undefined || target === undefined || source === undefined) return [];
  return [mountOf(source, target, readonly, propagation)];
}

type Source =
  | { readonly type: "bind"; readonly source: string; readonly sourceInTaskDir: boolean }
  | { readonly type: "volume"; readonly source: string };

function mountOf(
  source: Source,
  target: string,
  readonly: boolean,
  propagation: MountPropagation | undefined,
): TaskMount {
  if (source.type === "volume") return { ...source, target, readonly };
  return { ...source, target, readonly, propagation: propagation ?? "rprivate" };
}

function mountType(text: string): "bind" | "volume" | "tmpfs" {
  if (text === "bind" || text === "volume" || text === "tmpfs") return text;
  throw new Error(`must be bind, volume or tmpfs, and is ${shown(text)}`);
}

function parseTarget(text: string): string {
  const target = parseAbsolutePath(text);
  if (target === "/") throw new Error("must not be the root of the task's file system");
  return target;
}

function parseVolumeName(text: string): Source {
  if (!VOLUME_NAME.test(text))
    throw new Error(`must be a volume's name of letters, digits, ".", "_" and "-", and is ${shown(text)}`);
  return { type: "volume", source: text };
}

/** Parses a source. A relative path is relative to the task's directory. */
function parseSource(text: string): Source {
  if (text.startsWith("/")) return { type: "bind", source: parseAbsolutePath(text), sourceInTaskDir: false };
  if (text === "") throw new Error("must not be empty");
  const absolute = parseAbsolutePath(`/${text.replace(/^(\.\/)+/, "")}`);
  return { type: "bind", source: absolute.slice(1), sourceInTaskDir: true };
}

/** Parses `SOURCE:TARGET[:OPTIONS]`. As in Docker, a source without a slash is the name of a volume. */
export function parseVolume(text: string): TaskMount {
  const [from, to, options = "", ...rest] = text.split(":");
  if (from === undefined || to === undefined || rest.length > 0)
    throw new Error(`must be SOURCE:TARGET[:OPTIONS], and is ${shown(text)}`);
  const source = from.includes("/") ? parseSource(from) : parseVolumeName(from);
  let readonly = false;
  let propagation: MountPropagation | undefined;
  for (const option of options === "" ? [] : options.split(",")) {
    const found = PROPAGATIONS.find((it) => it === option);
    if (option === "ro" || option === "rw") readonly = option === "ro";
    else if (found !== undefined && source.type === "bind") propagation = found;
    else
      throw new Error(
        `option ${shown(option)} is not one of ro, rw and, for host paths, ${PROPAGATIONS.join(", ")}`,
      );
  }
  return mountOf(source, parseTarget(to), readonly, propagation);
}

/** Parses `TARGET[:size=SIZE]`. */
export function parseTmpfs(text: string): TaskMount {
  const [path = "", option, ...rest] = text.split(":");
  const size = option === undefined ? undefined : /^size=(.*)$/.exec(option)?.[1];
  if (rest.length > 0 || (option !== undefined && size === undefined))
    throw new Error(`must be TARGET[:size=SIZE], and is ${shown(text)}`);
  return {
    type: "tmpfs",
    target: parseTarget(path),
    ...(size !== undefined && { sizeBytes: parseSize(size) }),
  };
}

/** Sorts parents before children. Two mounts at one path are a problem. */
export function orderMounts(
  mounts: readonly TaskMount[],
  onDuplicate: (target: string) => void,
): TaskMount[] {
  const targets = new Set<string>();
  for (const { target } of mounts) {
    if (targets.has(target)) onDuplicate(target);
    targets.add(target);
  }
  const depth = ({ target }: TaskMount): number => target.split("/").length;
  return mounts.toSorted((a, b) => depth(a) - depth(b));
}
