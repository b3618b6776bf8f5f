import { chmod, mkdir } from "node:fs/promises";
import { undeclaredClaim } from "./check-spec.ts";
import type { ClaimStore } from "./claim-store.ts";
import { toMebibytes } from "./disk-image.ts";
import type { DiskUseWatch } from "./disk-use-watch.ts";
import { type FilesOwner, writeFilesVolume } from "./files-volume.ts";
import { giveToGroup } from "./group-ownership.ts";
import { prepareHostPath } from "./host-path.ts";
import { type LimitedDirectoryOptions, makeLimitedDirectory } from "./limited-directory.ts";
import { makeMountPoint } from "./mounts.ts";
import { checkNfs, mountNfs } from "./nfs-volume.ts";
import { pinHostPath } from "./pin-host-path.ts";
import { planFiles } from "./plan-files.ts";
import type { VolumeLayout } from "./volume-layout.ts";
import {
  type FilesSource,
  type PodVolumeSpec,
  type Volume,
  VolumeError,
  type VolumeEvents,
  type VolumeProvider,
  type VolumeSource,
} from "./volumes.ts";

export interface VolumeDependencies extends LimitedDirectoryOptions {
  readonly layout: VolumeLayout;
  readonly events: VolumeEvents;
  readonly claims: ClaimStore;
  readonly diskUse: DiskUseWatch;
  readonly mountProgram: string;
  /** Providers by the name that volumes use. */
  readonly providers: ReadonlyMap<string, VolumeProvider>;
}

export interface ReadyVolume {
  /** The canonical path on the host. */
  readonly path: string;
  readonly readOnly: boolean;
}

/** Prepares one volume. For a prepared volume, only checks it. Errors name the volume. */
export async function prepareVolume(
  dependencies: VolumeDependencies,
  pod: PodVolumeSpec,
  { name, source }: Volume,
  signal: AbortSignal,
): Promise<ReadyVolume> {
  signal.throwIfAborted();
  try {
    switch (source.type) {
      case "emptyDir":
        return await prepareEmptyDir(dependencies, pod, name, source, signal);
      case "files":
        return await prepareFiles(dependencies, pod, name, source);
      case "claim":
        return await prepareClaim(dependencies, pod, source, signal);
      case "hostPath": {
        const { within } = source;
        if (within !== undefined && !within.includes("/")) {
          const target = dependencies.layout.volumeMount(pod.uid, name);
          await pinHostPath({ ...source, within, target }, dependencies, signal);
          return { path: target, readOnly: false };
        }
        const path = await prepareHostPath(source.path, source.pathType, dependencies.children, signal);
        return { path, readOnly: false };
      }
      case "nfs": {
        const path = dependencies.layout.volumeMount(pod.uid, name);
        await mountNfs(source, path, dependencies, signal);
        await checkNfs(source, path, dependencies, signal);
        return { path, readOnly: source.readOnly };
      }
      case "provided":
        return { path: await prepareProvided(dependencies, pod, source), readOnly: false };
      default:
        return source satisfies never;
    }
  } catch (error) {
    if (!(error instanceof VolumeError)) throw error;
    throw new VolumeError(error.code, `volume ${name}: ${error.message}`, { cause: error });
  }
}

/**
 * Replaces the contents of a files volume. Leaves other volumes unchanged, and files volumes whose source no longer
 * exists.
 */
export async function updateVolume(
  dependencies: VolumeDependencies,
  pod: PodVolumeSpec,
  { name, source }: Volume,
): Promise<void> {
  if (source.type === "files" && source.contents !== undefined)
    await prepareFiles(dependencies, pod, name, source);
}

async function prepareEmptyDir(
  dependencies: VolumeDependencies,
  pod: PodVolumeSpec,
  name: string,
  { medium, sizeLimitBytes }: VolumeSource & { readonly type: "emptyDir" },
  signal: AbortSignal,
): Promise<ReadyVolume> {
  // As in Kubernetes, a limit of 0 means no limit.
  const limitBytes = sizeLimitBytes === 0 ? undefined : sizeLimitBytes;
  const mountPoint = dependencies.layout.volumeMount(pod.uid, name);
  if (medium === "memory") {
    if (!(await dependencies.mounts.isMounted(mountPoint))) {
      await makeMountPoint(mountPoint, "directory");
      const options = ["nodev", "mode=0777", ...(limitBytes === undefined ? [] : [`size=${limitBytes}`])];
      await dependencies.mounts.mount(
        { type: "tmpfs", source: "forage-memory", target: mountPoint, options },
        signal,
      );
    }
    await give(mountPoint, pod, signal);
    return { path: mountPoint, readOnly: false };
  }
  const home = dependencies.layout.volumeDisk(pod.uid, name);
  await mkdir(dependencies.layout.podDisk(pod.uid), { recursive: true, mode: 0o700 });
  const made = await makeLimitedDirectory(
    { home, mountPoint, kind: "scratch", limitBytes },
    dependencies,
    signal,
  );
  if (!made.isEnforced && limitBytes !== undefined) {
    dependencies.diskUse.watch({
      path: home,
      limitBytes,
      exceeded: (usedBytes) =>
        dependencies.events.exceeded({
          podUid: pod.uid,
          volume: name,
          usedBytes,
          limitBytes,
          message: excessMessage(`volume ${name}`, usedBytes, limitBytes),
        }),
    });
  }
  await give(made.path, pod, signal);
  return { path: made.path, readOnly: false };
}

async function prepareFiles(
  dependencies: VolumeDependencies,
  pod: PodVolumeSpec,
  name: string,
  source: FilesSource,
): Promise<ReadyVolume> {
  const { layout } = dependencies;
  const parent = source.secret ? layout.podMemory(pod.uid) : layout.podDisk(pod.uid);
  const path = source.secret ? layout.volumeMemory(pod.uid, name) : layout.volumeDisk(pod.uid, name);
  const files = planFiles(source) ?? [];
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await chmod(parent, 0o700);
  await writeFilesVolume(path, files, ownerOf(pod, source));
  // A container's own changes would be lost with the next update.
  return { path, readOnly: true };
}

function ownerOf({ fsGroup }: PodVolumeSpec, { ownerUid }: FilesSource): FilesOwner | undefined {
  if (fsGroup === undefined && ownerUid === undefined) return undefined;
  return { ...(fsGroup && { gid: fsGroup.gid }), ...(ownerUid !== undefined && { uid: ownerUid }) };
}

async function prepareClaim(
  dependencies: VolumeDependencies,
  pod: PodVolumeSpec,
  { namespace, claim, capacityBytes, readOnly, undeclared }: VolumeSource & { readonly type: "claim" },
  signal: AbortSignal,
): Promise<ReadyVolume> {
  if (undeclared) throw undeclaredClaim(namespace, claim);
  const held = await dependencies.claims.hold(namespace, claim, capacityBytes, pod.uid, signal);
  const limitBytes = held.capacityBytes;
  if (!held.isEnforced && limitBytes !== undefined) {
    const volume = `${namespace}/${claim}`;
    dependencies.diskUse.watch({
      path: held.path,
      limitBytes,
      exceeded: (usedBytes) =>
        dependencies.events.exceeded({
          volume,
          usedBytes,
          limitBytes,
          message: excessMessage(`claim ${volume}`, usedBytes, limitBytes),
        }),
    });
  }
  if (!readOnly) await give(held.path, pod, signal);
  return { path: held.path, readOnly };
}

async function prepareProvided(
  { providers }: VolumeDependencies,
  { uid }: PodVolumeSpec,
  { provider, id }: VolumeSource & { readonly type: "provided" },
): Promise<string> {
  const found = providers.get(provider);
  if (found === undefined) {
    throw new VolumeError(
      "SOURCE_MISSING",
      `this node's agent has no provider ${JSON.stringify(provider)}; enable it in the agent's configuration`,
    );
  }
  return await found.prepare(id, uid);
}

async function give(path: string, { fsGroup }: PodVolumeSpec, signal: AbortSignal): Promise<void> {
  if (fsGroup !== undefined) await giveToGroup(path, fsGroup, signal);
}

function excessMessage(what: string, usedBytes: number, limitBytes: number): string {
  return `${what}: ${toMebibytes(usedBytes)} are used, ${toMebibytes(limitBytes)} are allowed`;
}
