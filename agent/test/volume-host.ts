import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { run } from "../../hack/lib/run.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { type Clock, systemClock } from "../src/clock.ts";
import { HostVolumes, type HostVolumesOptions } from "../src/volumes/host-volumes.ts";
import { mountsBelow, parseMountTable } from "../src/volumes/mount-table.ts";
import type {
  FilesSource,
  PodVolumeSpec,
  VolumeExcess,
  VolumeMount,
  VolumeSource,
} from "../src/volumes/volumes.ts";
import { loopDevices } from "./own-mounts.ts";

export const MIB = 1024 * 1024;
const SETTLE_MS = 20_000;

/** The volumes of a host, in a directory with private mounts. */
export class VolumeHost {
  /** A directory that the test may use freely. */
  readonly directory: string;
  readonly excesses: VolumeExcess[] = [];
  readonly warnings: string[] = [];
  readonly #change: Partial<HostVolumesOptions>;
  readonly #open: HostVolumes[] = [];

  /** Sets up a host. At the end the test checks that all its files and mounts are gone. */
  static async setUp(
    t: TestContext,
    parent: string,
    change: Partial<HostVolumesOptions> = {},
  ): Promise<VolumeHost> {
    const host = new VolumeHost(join(parent, randomUUID().slice(0, 8)), change);
    mkdirSync(host.directory, { recursive: true });
    t.after(() => host.#close());
    return host;
  }

  constructor(directory: string, change: Partial<HostVolumesOptions> = {}) {
    this.directory = directory;
    this.#change = change;
  }

  get dataDir(): string {
    return join(this.directory, "volumes");
  }

  /** Returns a new agent's volumes on the same host; the previous agent has ended. */
  open(clock: Clock = systemClock): HostVolumes {
    const volumes = new HostVolumes({
      directory: this.dataDir,
      clock,
      events: {
        exceeded: (excess) => this.excesses.push(excess),
        warn: (event, fields) => this.warnings.push(`${event} ${JSON.stringify(fields)}`),
      },
      ...this.#change,
    });
    this.#open.push(volumes);
    return volumes;
  }

  /** Opens the volumes and recovers them. */
  async start(knownPodUids: readonly string[] = [], clock?: Clock): Promise<HostVolumes> {
    const volumes = this.open(clock);
    const pods = { knownUids: new Set(knownPodUids), inUse: [] };
    await volumes.recover(pods, new AbortController().signal);
    return volumes;
  }

  mounts(): readonly string[] {
    const table = parseMountTable(readFileSync("/proc/self/mountinfo", "utf8"));
    return mountsBelow(table, this.dataDir).map(({ mountPoint }) => mountPoint);
  }

  devices(): readonly string[] {
    return loopDevices().flatMap(({ device, file }) => (file.startsWith(this.dataDir) ? [device] : []));
  }

  /** Returns what is left of pods: mounts other than the one for all secrets, devices, directories. */
  remains(): readonly string[] {
    const homes = ["mounts", "disk", "memory"].flatMap((home) =>
      readdirSync(join(this.dataDir, home)).map((name) => join(home, name)),
    );
    const mounts = this.mounts().filter((path) => path !== join(this.dataDir, "memory"));
    return [...mounts, ...this.devices(), ...homes];
  }

  /**
   * Returns the devices once there are `count`, or after a limit. The kernel frees a detached device only when no
   * process has it open, and programs that list all devices open each for a moment.
   */
  async settledDevices(count: number): Promise<readonly string[]> {
    const what = `${count} loop devices are left`;
    await waitFor(() => this.devices().length === count, { what, limitMs: SETTLE_MS }).catch(() => undefined);
    return this.devices();
  }

  /** Returns what is left once all devices are gone, or after a limit. */
  async settled(): Promise<readonly string[]> {
    await this.settledDevices(0);
    return this.remains();
  }

  /** Removes mounts and devices, as a reboot does. */
  async reboot(): Promise<void> {
    for (const path of this.mounts()) await run("umount", ["-l", path]);
    for (const device of this.devices()) await run("losetup", ["--detach", device]);
  }

  async #close(): Promise<void> {
    for (const volumes of this.#open) await volumes.close();
    const last = await this.start();
    await last.close();
    for (const { namespace, name } of await last.claims()) {
      await last.removeClaim(namespace, name, new AbortController().signal);
    }
    assert.deepEqual(await this.settled(), []);
  }
}

export function aPod(
  uid: string,
  sources: Readonly<Record<string, VolumeSource>>,
  changes: Partial<PodVolumeSpec> = {},
): PodVolumeSpec {
  return { uid, volumes: Object.entries(sources).map(([name, source]) => ({ name, source })), ...changes };
}

export function aMount(volume: string, changes: Partial<VolumeMount> = {}): VolumeMount {
  return { volume, mountPath: `/mnt/${volume}`, subPath: "", readOnly: false, ...changes };
}

export function files(
  contents: Readonly<Record<string, string>> | undefined,
  changes: Partial<FilesSource> = {},
): FilesSource {
  return {
    type: "files",
    secret: false,
    title: "config map web",
    items: [],
    defaultMode: 0,
    optional: false,
    ...(contents && {
      contents: new Map(Object.entries(contents).map(([key, text]) => [key, Buffer.from(text)])),
    }),
    ...changes,
  };
}
