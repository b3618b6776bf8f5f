import { isAwkward } from "./check-spec.ts";
import type { VolumeMount } from "./volumes.ts";

/** The properties of a volume that planning needs. */
export interface BindableVolume {
  /** Canonical. */
  readonly path: string;
  /** Applies even if the mount is writable. */
  readonly readOnly: boolean;
}

export interface PlannedBind {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
  /** The source is not to be mounted itself, but a path in it, pinned; `index` is unique in the container. */
  readonly pin?: { readonly subPath: string; readonly create: boolean; readonly index: number };
}

/** Pure. Parents come before what is mounted in them. The mounts are checked, their volumes there. */
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
    // A path that the runtime's client can't be given goes by another name.
    if (names.length === 0 && !isAwkward(ready.path)) return [bind];
    return [{ ...bind, pin: { subPath: names.join("/"), create: !ready.readOnly, index } }];
  });
  return planned.sort((a, b) => partsOf(a.target).length - partsOf(b.target).length);
}

function partsOf(path: string): readonly string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}
