import { chmod, mkdir, readdir } from "node:fs/promises";
import { KeyedMutex } from "@forage/common/keyed-mutex";
import { messageOf } from "@forage/common/message-of";
import type { Clock } from "../clock.ts";
import type { NoteDamage } from "../damage-reports.ts";
import { planBinds } from "./bind-plan.ts";
import { checkClaimName, checkMounts, checkPod, checkPodUid } from "./check-spec.ts";
import { ClaimStore } from "./claim-store.ts";
import { removeTrials } from "./disk-image.ts";
import { DiskUseWatch, measureUse } from "./disk-use-watch.ts";
import { exists, imagesTrial } from "./limited-directory.ts";
import { detachDeletedFilesOf, detachLoopDevicesOf } from "./loop-devices.ts";
import { readMountTable, visibleFrom } from "./mount-table.ts";
import { codeOf, Mounts, makeMountPoint, removeMountPoints, removeTree } from "./mounts.ts";
import { MOUNT_NFS } from "./nfs-volume.ts";
import { prepareVolume, type ReadyVolume, updateVolume, type VolumeDependencies } from "./prepare-volume.ts";
import { ChildRunner } from "./run-child.ts";
import { pinSubPath } from "./sub-path.ts";
import { VolumeLayout } from "./volume-layout.ts";
import {
  type ClaimState,
  type PodsToRecover,
  type PodVolumeSpec,
  type PodVolumes,
  type VolumeBind,
  VolumeError,
  type VolumeEvents,
  type VolumeMount,
  type VolumeProvider,
} from "./volumes.ts";

// Enough for all secrets of a host, with old and new versions side by side during changes.
const MEMORY_BYTES_MAX = 256 * 1024 * 1024;
/**
 * Times after a start at which loop devices of deleted files are searched, because a killed agent's programs may still
 * attach some.
 */
const LATE_DEVICES_MS: readonly number[] = [1_000, 5_000, 15_000];
const CONTAINER_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export interface HostVolumesOptions {
  /** The directory of all stored data, created if missing. */
  readonly directory: string;
  readonly clock: Clock;
  readonly events: VolumeEvents;
  /** Called for damaged records. Default: they are only logged. */
  readonly noteDamage?: NoteDamage;
  /**
   * Whether limits are enforced by loop devices instead of only measured. Disable on hosts without loop devices.
   * Default: true.
   */
  readonly useImages?: boolean;
  readonly mountNfsProgram?: string;
  /** Default: none. */
  readonly providers?: ReadonlyMap<string, VolumeProvider>;
}

/**
 * Volumes on a Linux host, managed as root. Except for the results of `prepare`, all state is on disk or in the
 * kernel's mount table.
 */
export class HostVolumes implements PodVolumes {
  readonly #layout: VolumeLayout;
  readonly #dependencies: VolumeDependencies;
  readonly #clock: Clock;
  /** Functions that cancel the searches that are due. */
  readonly #lateChecks: (() => void)[] = [];
  readonly #closed = new AbortController();
  readonly #mutex = new KeyedMutex();
  readonly #prepared = new Map<string, ReadonlyMap<string, ReadyVolume>>();

  constructor(options: HostVolumesOptions) {
    const { directory, clock, events, useImages = true, mountNfsProgram = MOUNT_NFS, providers } = options;
    const logDamage: NoteDamage = (path, reason, remedy) =>
      events.warn("volume-record-damaged", { path, reason, remedy });
    const layout = new VolumeLayout(directory);
    this.#clock = clock;
    const children = new ChildRunner();
    const mounts = new Mounts(children);
    const base = {
      children,
      mounts,
      warn: events.warn,
      imagesWork: useImages ? imagesTrial(layout.root, { children, mounts }, events.warn) : async () => false,
    };
    const onError = (path: string, err: unknown) => events.warn("volume-not-measured", { path, err });
    this.#layout = layout;
    this.#dependencies = {
      ...base,
      layout,
      events,
      mountProgram: mountNfsProgram,
      providers: providers ?? new Map(),
      diskUse: new DiskUseWatch({
        clock,
        measure: (path, signal) => measureUse(path, children, signal),
        onError,
      }),
      claims: new ClaimStore({
        ...{ ...base, directory: layout.claims, mutex: this.#mutex },
        noteDamage: options.noteDamage ?? logDamage,
      }),
    };
  }

  async recover({ knownUids, inUse }: PodsToRecover, signal: AbortSignal): Promise<void> {
    await this.#openLayout(signal);
    await this.#removeTrials(signal);
    const found = await Promise.all(this.#layout.homes.map((home) => readdir(home)));
    const unknown = new Set(found.flat().filter((uid) => !knownUids.has(uid)));
    for (const uid of unknown) {
      await this.release(uid, signal).catch((err) => {
        if (signal.aborted) throw err;
        // Remains of one pod must not affect others. The next start retries.
        this.#dependencies.events.warn("volumes-not-removed", { podUid: uid, err });
      });
    }
    await this.#dependencies.claims.settle(knownUids, claimUsersOf(inUse), signal);
    for (const afterMs of LATE_DEVICES_MS)
      this.#lateChecks.push(this.#clock.schedule(afterMs, () => void this.#detachLateDevices()));
  }

  prepare(pod: PodVolumeSpec, signal: AbortSignal): Promise<void> {
    return this.#inTurn(pod.uid, async () => {
      checkPod(pod);
      await this.#mountMemory(pod, signal);
      const ready = new Map<string, ReadyVolume>();
      for (const volume of pod.volumes) {
        ready.set(volume.name, await prepareVolume(this.#dependencies, pod, volume, signal));
      }
      this.#prepared.set(pod.uid, ready);
    });
  }

  update(pod: PodVolumeSpec, signal: AbortSignal): Promise<void> {
    return this.#inTurn(pod.uid, async () => {
      checkPod(pod);
      await this.#mountMemory(pod, signal);
      for (const volume of pod.volumes) {
        signal.throwIfAborted();
        await updateVolume(this.#dependencies, pod, volume);
      }
    });
  }

  binds(
    podUid: string,
    container: string,
    mounts: readonly VolumeMount[],
    signal: AbortSignal,
  ): Promise<readonly VolumeBind[]> {
    return this.#inTurn(podUid, async () => {
      const ready = this.#prepared.get(podUid);
      if (ready === undefined)
        throw new VolumeError("HOST_FAILED", `the volumes of pod ${podUid} aren't prepared`);
      checkMounts(mounts, new Set(ready.keys()));
      if (!CONTAINER_NAME.test(container)) {
        throw new VolumeError("INVALID", `${JSON.stringify(container)} can't be a container's name`);
      }
      const binds: VolumeBind[] = [];
      for (const { source, target, readOnly, pin } of planBinds(mounts, ready)) {
        if (pin === undefined) {
          binds.push({ source, target, readOnly });
          continue;
        }
        const place = this.#layout.pin(podUid, container, pin.index);
        const visible = visibleFrom(await readMountTable(), source);
        const request = { root: source, visible, subPath: pin.subPath, create: pin.create, target: place };
        await pinSubPath(request, this.#dependencies, signal);
        binds.push({ source: place, target, readOnly });
      }
      return binds;
    });
  }

  release(podUid: string, signal: AbortSignal): Promise<void> {
    return this.#inTurn(podUid, async () => {
      const { children, mounts, claims, diskUse } = this.#dependencies;
      const podMounts = this.#layout.podMounts(podUid);
      this.#prepared.delete(podUid);
      await mounts.unmountAll(podMounts, signal);
      await removeMountPoints(podMounts);
      for (const path of [this.#layout.podDisk(podUid), this.#layout.podMemory(podUid)]) {
        if (!(await exists(path))) continue;
        diskUse.unwatch(path);
        // A privileged container may have added mounts of its own.
        await mounts.unmountAll(path, signal);
        await detachLoopDevicesOf(path, children, signal);
        await removeTree(path, children, signal);
      }
      await claims.letGo(podUid, signal);
    });
  }

  claims(): Promise<readonly ClaimState[]> {
    return this.#dependencies.claims.list();
  }

  async removeClaim(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    checkClaimName(namespace, name);
    await this.#dependencies.claims.remove(namespace, name, signal);
  }

  async close(): Promise<void> {
    for (const cancel of this.#lateChecks) cancel();
    this.#closed.abort();
    await this.#mutex.idle();
    await this.#dependencies.diskUse.close();
  }

  async #removeTrials(signal: AbortSignal): Promise<void> {
    const { children, events } = this.#dependencies;
    await removeTrials(this.#layout.root, { children }, signal).catch((err) => {
      if (signal.aborted) throw err;
      events.warn("loop-devices-not-freed", { err });
    });
  }

  async #detachLateDevices(): Promise<void> {
    const { children, claims, events } = this.#dependencies;
    const look = async () => {
      await detachDeletedFilesOf(this.#layout.root, children, this.#closed.signal);
      await claims.unmountUnused(this.#closed.signal);
    };
    await this.#mutex.run("late devices", look).catch((err) => {
      if (!this.#closed.signal.aborted) events.warn("loop-devices-not-freed", { err });
    });
  }

  async #openLayout(signal: AbortSignal): Promise<void> {
    for (const directory of [this.#layout.root, ...this.#layout.homes, this.#layout.claims]) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
    }
    await chmod(this.#layout.root, 0o700);
    signal.throwIfAborted();
  }

  /** Mounts the tmpfs for secrets. On kernels that support it (6.4 or later) its pages are never swapped out. */
  async #mountMemory({ volumes }: PodVolumeSpec, signal: AbortSignal): Promise<void> {
    if (!volumes.some(({ source }) => source.type === "files" && source.secret)) return;
    const target = this.#layout.memory;
    await this.#mutex.run("memory", async () => {
      if (await this.#dependencies.mounts.isMounted(target)) return;
      await makeMountPoint(target, "directory");
      const options = [`size=${MEMORY_BYTES_MAX}`, "mode=0700", "nodev", "nosuid"];
      const request = { type: "tmpfs", source: "forage-secrets", target } as const;
      await this.#dependencies.mounts
        .mount({ ...request, options: [...options, "noswap"] }, signal)
        .catch((error) => {
          if (!(error instanceof VolumeError) || error.code !== "HOST_FAILED") throw error;
          return this.#dependencies.mounts.mount({ ...request, options }, signal);
        });
    });
  }

  async #inTurn<Result>(podUid: string, work: () => Promise<Result>): Promise<Result> {
    checkPodUid(podUid);
    return this.#mutex.run(`pod ${podUid}`, () => work().catch(toVolumeError));
  }
}

/** Returns the uids of pods by the claim they use, `<namespace>/<name>`. */
function claimUsersOf(pods: readonly PodVolumeSpec[]): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, string[]>();
  for (const { uid, volumes } of pods) {
    for (const { source } of volumes) {
      if (source.type !== "claim") continue;
      const key = `${source.namespace}/${source.claim}`;
      users.set(key, [...(users.get(key) ?? []), uid]);
    }
  }
  return users;
}

function toVolumeError(error: unknown): never {
  if (error instanceof VolumeError) throw error;
  const message = messageOf(error);
  if (error instanceof Error && error.name === "AbortError")
    throw new VolumeError("ABORTED", message, { cause: error });
  const code = codeOf(error) === "ENOSPC" ? "NO_ROOM" : "HOST_FAILED";
  throw new VolumeError(code, message, { cause: error });
}
