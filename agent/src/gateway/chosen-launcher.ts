import { existsSync } from "node:fs";
import type { Launcher } from "./envoy-proxy.ts";

export interface ChosenLauncherOptions {
  /** The paths at which Envoy may be installed, in the order of preference. */
  readonly programs: readonly string[];
  readonly ofProgram: (program: string) => Launcher;
  /** Starts Envoy from an image if none of the programs exists. Undefined: no image is configured. */
  readonly ofImage: Launcher | undefined;
}

const NO_ENVOY =
  "there is no Envoy on this host: install it as /usr/bin/envoy, or set gateway.envoy to its path or gateway.image to an image that contains it";

/**
 * Chooses between Envoy's program and its image at each start, because a program may be installed or removed while the
 * agent runs.
 */
export class ChosenLauncher implements Launcher {
  readonly #options: ChosenLauncherOptions;

  constructor(options: ChosenLauncherOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#choose()?.name ?? "envoy";
  }

  async start(args: readonly string[], log: string, ended: () => void): Promise<void> {
    const chosen = this.#choose();
    if (chosen === undefined) throw new Error(NO_ENVOY);
    await chosen.start(args, log, ended);
  }

  /** Removes the container of an Envoy that was started from the image, even if a program was installed since. */
  async remove(): Promise<void> {
    await this.#options.ofImage?.remove();
  }

  #choose(): Launcher | undefined {
    const { programs, ofProgram, ofImage } = this.#options;
    const program = programs.find((path) => existsSync(path));
    return program === undefined ? ofImage : ofProgram(program);
  }
}
