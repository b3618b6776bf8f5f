import { stat } from "node:fs/promises";
import { messageOf } from "@forage/common/message-of";
import { type Clock, pause } from "../clock.ts";
import type { NoteDamage } from "../damage-reports.ts";
import type { HostDevice } from "../runtime/runtime.ts";
import { assignUnits, type DeviceAssignment } from "./assign-units.ts";
import { DeviceRecords } from "./device-records.ts";
import {
  type DeviceAmounts,
  DeviceError,
  type DevicePool,
  type DeviceRequest,
  type DeviceUnit,
  type PodDevices,
} from "./devices.ts";

export interface HostDevicesOptions {
  readonly pool: DevicePool;
  /** The directory of the records, created if missing. */
  readonly directory: string;
  readonly noteDamage: NoteDamage;
  /** Reports whether a path is currently a device. Default: checks the host. */
  readonly isDevice?: (path: string) => Promise<boolean>;
}

// Devices are usually added and removed by hand.
const CHECK_INTERVAL_MS = 60_000;

/** The devices that the agent's configuration declares, with their assignments. */
export class HostDevices implements PodDevices {
  readonly #pool: DevicePool;
  readonly #records: DeviceRecords;
  readonly #isDevice: (path: string) => Promise<boolean>;
  readonly #noteDamage: NoteDamage;
  #held = new Map<string, readonly DeviceAssignment[]>();
  /** Pods whose record is damaged or missing. They may have any unit that no other pod has. */
  readonly #unknown = new Set<string>();
  #present: ReadonlySet<DeviceUnit> = new Set();
  #freed: () => void = () => undefined;
  /** Serializes operations, so that each decision is recorded before the next. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ pool, directory, noteDamage, isDevice = isHostDevice }: HostDevicesOptions) {
    this.#pool = pool;
    this.#noteDamage = noteDamage;
    this.#records = new DeviceRecords(directory);
    this.#isDevice = isDevice;
  }

  recover(knownPodUids: ReadonlySet<string>, usingPodUids: ReadonlySet<string>): Promise<void> {
    return this.#inTurn(async () => {
      const { held, damaged } = await this.#records.load();
      this.#unknown.clear();
      for (const [uid, path] of damaged) {
        if (!knownPodUids.has(uid)) {
          await this.#records.remove(uid);
          continue;
        }
        this.#noteUnknown(uid, path, "its checksum or form is wrong");
      }
      for (const uid of usingPodUids) {
        if (held.has(uid) || damaged.has(uid)) continue;
        this.#noteUnknown(uid, this.#records.pathOf(uid), "it is missing while containers of the pod run");
      }
      for (const uid of held.keys()) {
        if (knownPodUids.has(uid)) continue;
        held.delete(uid);
        await this.#records.remove(uid);
      }
      this.#held = held;
      await this.#refresh();
    });
  }

  allocate(podUid: string, request: DeviceRequest): Promise<readonly HostDevice[]> {
    return this.#inTurn(async () => {
      if (Object.keys(request.desired).length === 0) return [];
      await this.#refresh();
      this.#assertKnown(podUid);
      const own = this.#held.get(podUid) ?? [];
      const others = [...this.#held].filter(([uid]) => uid !== podUid).flatMap(([, holdings]) => holdings);
      const isPresent = (unit: DeviceUnit) => this.#present.has(unit);
      const assigned = assignUnits(this.#pool, isPresent, request, { own, others });
      await this.#keep(podUid, [...own.filter((it) => it.container !== request.container), ...assigned]);
      return this.#devicesOf(assigned);
    });
  }

  release(podUid: string): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#held.has(podUid) && !this.#unknown.has(podUid)) return;
      await this.#records.remove(podUid);
      this.#held.delete(podUid);
      this.#unknown.delete(podUid);
      this.#freed();
    });
  }

  #noteUnknown(podUid: string, path: string, reason: string): void {
    this.#unknown.add(podUid);
    this.#noteDamage(path, reason, `no other pod gets devices until pod ${podUid} is removed`);
  }

  #assertKnown(podUid: string): void {
    const other = [...this.#unknown].find((uid) => uid !== podUid);
    if (other === undefined) return;
    throw new DeviceError(
      `the record of pod ${other}'s devices is damaged or missing, so pod ${other} may use any unit: devices are assigned again once that pod is removed`,
    );
  }

  onFreed(listener: () => void): void {
    this.#freed = listener;
  }

  amounts(): DeviceAmounts {
    const count = (isCounted: (unit: DeviceUnit) => boolean) =>
      Object.fromEntries(
        Object.entries(this.#pool).map(([name, units]) => [name, units.filter(isCounted).length]),
      );
    return { capacity: count(() => true), allocatable: count((unit) => this.#present.has(unit)) };
  }

  async watch(clock: Clock, signal: AbortSignal, onChange: () => void): Promise<void> {
    if (Object.keys(this.#pool).length === 0) return;
    while (!signal.aborted) {
      if (await this.#inTurn(() => this.#refresh())) onChange();
      await pause(clock, CHECK_INTERVAL_MS, signal);
    }
  }

  /** Checks the devices. Returns whether the usable ones have changed. */
  async #refresh(): Promise<boolean> {
    const units = Object.values(this.#pool).flat();
    const found = await Promise.all(units.map((unit) => this.#isThere(unit)));
    const before = this.#present;
    this.#present = new Set(units.filter((_, index) => found[index]));
    if ([...this.#present].some((unit) => !before.has(unit))) this.#freed();
    return before.size !== this.#present.size || [...before].some((unit) => !this.#present.has(unit));
  }

  async #isThere({ devices }: DeviceUnit): Promise<boolean> {
    const found = await Promise.all(devices.map(({ hostPath }) => this.#isDevice(hostPath)));
    return found.every(Boolean);
  }

  async #keep(podUid: string, holdings: readonly DeviceAssignment[]): Promise<void> {
    const before = this.#held.get(podUid);
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(holdings)) return;
    // Writing an intact record of one container would hide that the pod's other assignments are unknown.
    const written = this.#unknown.has(podUid) ? Promise.resolve() : this.#records.write(podUid, holdings);
    await written.catch((cause) => {
      throw new DeviceError(`devices can't be recorded: ${messageOf(cause)}`, {
        cause,
      });
    });
    this.#held.set(podUid, holdings);
  }

  /** Returns the devices of the units. A path that several units share is included once. */
  #devicesOf(holdings: readonly DeviceAssignment[]): readonly HostDevice[] {
    const byPath = new Map<string, HostDevice>();
    for (const { resource, unit } of holdings) {
      const found = this.#pool[resource]?.find((it) => it.id === unit);
      for (const device of found?.devices ?? []) byPath.set(device.containerPath, device);
    }
    return [...byPath.values()];
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

async function isHostDevice(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && (found.isCharacterDevice() || found.isBlockDevice());
}
