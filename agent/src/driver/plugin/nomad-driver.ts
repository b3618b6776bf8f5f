import { isDeepStrictEqual } from "node:util";
import {
  type FingerprintResponse,
  DriverCapabilities_FSIsolation as FsIsolation,
  DriverCapabilities_MountConfigs as MountConfigs,
  NetworkIsolationSpec_NetworkIsolationMode as NetworkMode,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { Spec } from "@forage/proto/plugins/shared/hclspec/hcl_spec";
import type { Clock } from "../../clock.ts";
import type { DriverOptions } from "../config/driver-options.ts";
import { DRIVER_SCHEMA } from "../config/driver-schema.ts";
import { toSpec } from "../config/option.ts";
import { readDriverOptions } from "../config/read-driver-options.ts";
import { readTaskOptions } from "../config/read-task-options.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { TASK_SCHEMA } from "../config/task-schema.ts";
import { DriverError } from "../driver-error.ts";
import type { DriverFront, TaskDriver } from "../driver-service.ts";
import type { NewerCapabilities } from "../rpc/newer-calls.ts";
import type { BasePluginFront } from "./base-plugin.ts";
import { DRIVER_NAME } from "./driver-health.ts";
import { fingerprint } from "./fingerprint.ts";
import type { ContainerdObserver } from "./observe-containerd.ts";

export interface NomadDriverOptions {
  readonly version: string;
  readonly clock: Clock;
  readonly observe: (options: DriverOptions) => ContainerdObserver;
  readonly openTasks: (options: DriverOptions) => Promise<TaskDriver>;
}

/**
 * The driver's configuration, schemas and health, as Nomad uses them. Has no effect outside the process before the
 * first call about a task.
 */
export class NomadDriver implements DriverFront, BasePluginFront {
  readonly name = DRIVER_NAME;
  readonly version: string;
  readonly #options: NomadDriverOptions;
  #config: DriverOptions | undefined;
  #tasks: Promise<TaskDriver> | undefined;
  #isClosed = false;

  constructor(options: NomadDriverOptions, config?: DriverOptions) {
    this.version = options.version;
    this.#options = options;
    this.#config = config;
  }

  configSchema(): Spec {
    return toSpec(DRIVER_SCHEMA);
  }

  taskConfigSchema(): Spec {
    return toSpec(TASK_SCHEMA);
  }

  setConfig(msgpack: Uint8Array): void {
    const config = readDriverOptions(msgpack);
    if (this.#tasks !== undefined && !isDeepStrictEqual(config, this.#config))
      throw new DriverError(
        "FAILED_PRECONDITION",
        "SetConfig: the driver has tasks with another configuration; restart Nomad's client to change it",
      );
    this.#config = config;
  }

  capabilities(): NewerCapabilities {
    return {
      sendSignals: true,
      exec: true,
      fsIsolation: FsIsolation.IMAGE,
      networkIsolationModes: [NetworkMode.HOST, NetworkMode.GROUP, NetworkMode.TASK],
      mustCreateNetwork: false,
      mountConfigs: MountConfigs.ANY_MOUNTS,
      remoteTasks: false,
      disableLogCollection: this.#config?.disableLogCollection === true,
    };
  }

  fingerprint(signal: AbortSignal): AsyncIterable<FingerprintResponse> {
    const { version, clock, observe } = this.#options;
    // Nomad configures the plugin before this call. Other callers get the health for the default configuration.
    const options = this.#config ?? readDriverOptions(new Uint8Array());
    return fingerprint({ options, version, clock, observer: observe(options) }, signal);
  }

  parseTask(msgpack: Uint8Array): TaskOptions {
    return readTaskOptions(msgpack, this.#configured());
  }

  async tasks(): Promise<TaskDriver> {
    const config = this.#configured();
    if (!config.enabled)
      throw new DriverError("FAILED_PRECONDITION", "the driver is disabled in the plugin's configuration");
    if (this.#isClosed) throw new DriverError("FAILED_PRECONDITION", "the driver is stopping");
    this.#tasks ??= this.#options.openTasks(config).catch((error: unknown) => {
      // The next call retries, because the cause, such as a full disk, may be temporary.
      this.#tasks = undefined;
      throw error;
    });
    return await this.#tasks;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#tasks?.catch(() => undefined))?.close();
  }

  #configured(): DriverOptions {
    if (this.#config === undefined)
      throw new DriverError("FAILED_PRECONDITION", "the driver is not configured yet: SetConfig comes first");
    return this.#config;
  }
}
