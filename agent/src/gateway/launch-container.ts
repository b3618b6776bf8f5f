import type { Clock } from "../clock.ts";
import { type ContainerRuntime, HOST_NETWORK } from "../runtime/runtime.ts";
import type { Launcher } from "./envoy-proxy.ts";

export interface ContainerLauncherOptions {
  /** An image with a program `envoy` on its PATH. */
  readonly image: string;
  readonly instance: string;
  readonly runtime: Pick<ContainerRuntime, "hasImage" | "pull" | "run" | "list" | "remove">;
  /** Directories that are mounted into the container at the same paths, writable. */
  readonly directories: readonly string[];
  readonly clock: Clock;
}

const LABEL = "forage.dev/gateway-proxy";
const START_WITHIN_MS = 600_000;

/**
 * Runs Envoy as a container on the host's network. The container belongs to no pod, and only this class starts and
 * removes it.
 */
export class ContainerLauncher implements Launcher {
  readonly #options: ContainerLauncherOptions;

  constructor(options: ContainerLauncherOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.image;
  }

  async start(args: readonly string[], log: string): Promise<void> {
    const { image, instance, runtime, directories, clock } = this.#options;
    const signal = AbortSignal.timeout(START_WITHIN_MS);
    await this.remove();
    if (!(await runtime.hasImage(image, signal))) await runtime.pull(image, signal);
    await runtime.run(
      {
        name: `${instance}-gateway-${clock.nowMs()}`,
        labels: { [LABEL]: "envoy" },
        image,
        command: ["envoy"],
        args,
        env: [],
        networkNamespace: HOST_NETWORK,
        hostname: "",
        binds: directories.map((path) => ({ source: path, target: path, readOnly: false })),
        logFile: log,
        // Envoy's files are readable by root only.
        user: { uid: 0, gid: 0, supplementalGroups: [] },
      },
      signal,
    );
  }

  async remove(): Promise<void> {
    const { runtime } = this.#options;
    const signal = AbortSignal.timeout(START_WITHIN_MS);
    const containers = await runtime.list(signal);
    const ours = containers.filter(({ labels }) => labels[LABEL] !== undefined).map(({ id }) => id);
    if (ours.length > 0) await runtime.remove(ours, signal);
  }
}
