import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import type { RunCommand } from "../network/run-command.ts";
import type { Launcher } from "./envoy-proxy.ts";

export interface ProgramLauncherOptions {
  /** The path of Envoy's program. */
  readonly program: string;
  readonly instance: string;
  /** Whether systemd can run Envoy in a unit of its own. Otherwise processes of the agent's unit would end with it. */
  readonly systemd: boolean;
  readonly run: RunCommand;
}

/** The limit of Envoy's open files: two for each active request, one for each service and certificate. */
const OPEN_FILES_MAX = 262_144;
/**
 * The size limit of each file of the proxy, in blocks of 512 bytes (1 GiB). It applies while no agent runs to rotate
 * the log.
 */
const FILE_BLOCKS_MAX = 2_097_152;

/** Starts Envoy from the host. */
export class ProgramLauncher implements Launcher {
  readonly #options: ProgramLauncherOptions;

  constructor(options: ProgramLauncherOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.program;
  }

  async start(args: readonly string[], log: string, ended: () => void): Promise<void> {
    const { program, instance, systemd, run } = this.#options;
    if (!existsSync(program)) throw new Error(`${program} is not there: install Envoy again`);
    // If the limit can't be raised, it stays at the agent's own. exec replaces the shell, because a second process with
    // these arguments would look like another Envoy. Without the trap, the signal for a full file would end Envoy; with
    // it, only the write fails.
    const script = `trap "" XFSZ; ulimit -f ${FILE_BLOCKS_MAX}; ulimit -n ${OPEN_FILES_MAX} 2>/dev/null || :; exec "$@"`;
    const command = ["/bin/sh", "-c", script, "forage-gateway", program, ...args];
    if (!systemd) return spawnDetached(command, log, ended);
    await run("systemd-run", [
      ...["--quiet", "--collect", `--unit=forage-gateway-${instance}`, "--description=Forage gateway"],
      ...["--property=OOMScoreAdjust=-500", `--property=LimitNOFILE=${OPEN_FILES_MAX}`],
      ...[`--property=StandardError=append:${log}`, "--", ...command],
    ]);
  }

  async remove(): Promise<void> {}
}

async function spawnDetached(command: readonly string[], log: string, ended: () => void): Promise<void> {
  const [file = "", ...args] = command;
  const output = await open(log, "a", 0o600);
  try {
    const child = spawn(file, args, {
      detached: true,
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      stdio: ["ignore", output.fd, output.fd],
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
    child.on("exit", ended);
    child.unref();
  } finally {
    await output.close();
  }
}
