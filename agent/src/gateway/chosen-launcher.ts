import { existsSync } from "node:fs";
import type { Launcher } from "./envoy-proxy.ts";

export interface ChosenLauncherOptions {
  /** The paths at which Envoy may be installed, in the order of preference. */
  readonly programs: readonly string[];
  readonly ofProgram: (program: string) => Launcher;
  /** Starts Envoy from an image if none of the programs is there; undefined: no image is configured. */
  readonly ofImage: Launcher | undefined;
}

const NO_ENVOY =
  "there is no Envoy on this host: install it as /usr/bin/envoy, or say where it is (gateway.envoy) or which image has it (gateway.image)";

/** Chooses Envoy's program or image at each start, because a program may be installed or removed while the agent runs. */
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

  /** Also removes the container of an Envoy that was started before a program was installed. */
  async remove(): Promise<void> {
    await this.#options.ofImage?.remove();
  }

  #choose(): Launcher | undefined {
    const { programs, ofProgram, ofImage } = this.#options;
    const program = programs.find((path) => existsSync(path));
    return program === undefined ? ofImage : ofProgram(program);
  }
}
