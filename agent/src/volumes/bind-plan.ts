import { hasOptionSeparator } from "./check-spec.ts";
import type { VolumeMount } from "./volumes.ts";

/** The properties of a volume that planning needs. */
export interface BindableVolume {
  /** The volume's canonical path. */
  readonly path: string;
  /** Whether the volume is read-only, even if the mount is writable. */
  readonly readOnly: boolean;
}

export interface PlannedBind {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
  /**
   * If set, a pinned path in the source is mounted instead of the source itself. `index` is unique in the container.
   */
  readonly pin?: { readonly subPath: string; readonly create: boolean; readonly index: number };
}

/**
 * Plans the bind mounts of a container, parents before what is mounted in them. The mounts must be checked and their
 * volumes prepared. Pure.
 */
export function planBinds(
  mounts: readonly VolumeMount[],
  volumes: ReadonlyMap<string, BindableVolume>,
): readonly PlannedBind[] {
  const planned = mounts.flatMap(({ volume, mountPath, subPath, readOnly }, index): PlannedBind[] => {
    const ready = volumes.get(volume);
    if (ready === undefined) return [];
    const names = subPath.split("/").filter((name) => name !== "" && name !== ".");
    const bind = {
      source: ready.path,
      target: `/${partsOf(mountPath).join("/")}`,
      readOnly: readOnly || ready.readOnly,
    };
    // A path that can't be passed to nerdctl is mounted under another name.
    if (names.length === 0 && !hasOptionSeparator(ready.path)) return [bind];
    return [{ ...bind, pin: { subPath: names.join("/"), create: !ready.readOnly, index } }];
  });
  return planned.sort((a, b) => partsOf(a.target).length - partsOf(b.target).length);
}

function partsOf(path: string): readonly string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}
