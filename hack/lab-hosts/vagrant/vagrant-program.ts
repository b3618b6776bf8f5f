import { join } from "node:path";
import { type RunOptions, type RunResult, run } from "../../lib/run.ts";
import { SetupError } from "../../lib/setup-error.ts";

/** Runs `vagrant` with the arguments. Throws with Vagrant's own message if it fails. */
export type Vagrant = (
  args: readonly string[],
  options?: Pick<RunOptions, "signal" | "timeoutMs" | "onOutput">,
) => Promise<RunResult>;

/** The error for a machine without any provider, found before anything is made. */
export class NoProviderError extends SetupError {
  constructor() {
    super(
      "MISSING_TOOL",
      "Vagrant finds no provider of virtual machines on this machine",
      "install one, such as vagrant-libvirt with libvirt-daemon-system, where the processor allows it, or use --kind nspawn or uml",
    );
  }
}

const VAGRANTFILE_DIR = join(import.meta.dirname, "..", "..");
const NO_PROVIDER = ["Vagrant::Errors::NoDefaultProvider", "Vagrant::Errors::ProviderNotUsable"];

/** Returns a function that runs Vagrant on hack/Vagrantfile with its state in the directory. */
export function vagrantIn(stateDir: string, machinesFile: string | undefined): Vagrant {
  const env = {
    ...{ VAGRANT_CWD: VAGRANTFILE_DIR, VAGRANT_DOTFILE_PATH: stateDir, VAGRANT_CHECKPOINT_DISABLE: "1" },
    FORAGE_LAB_MACHINES: machinesFile ?? "",
  };
  return async (args, options) => {
    const result = await run("vagrant", args, { ...options, env, allowFailure: true });
    if (result.exitCode === 0) return result;
    const { type, message } = errorIn(result.stdout) ?? { type: "", message: result.stderr.trim() };
    if (NO_PROVIDER.includes(type)) throw new NoProviderError();
    throw new SetupError(
      "COMMAND_FAILED",
      `vagrant ${args.join(" ")}: exit code ${result.exitCode}\n${message}`,
      "see the message of Vagrant above",
    );
  };
}

/** Returns the error in Vagrant's machine-readable output: lines of a time, a machine, a type and data, separated by commas. */
export function errorIn(output: string): { readonly type: string; readonly message: string } | undefined {
  for (const line of output.split("\n")) {
    const [, , type, name = "", message = ""] = line.split(",");
    if (type === "error-exit") return { type: name, message: readData(message) };
  }
  return undefined;
}

/** Returns the state of a machine in the output of `vagrant status --machine-readable`, such as `running`. */
export function stateIn(output: string, machine: string): string | undefined {
  for (const line of output.split("\n")) {
    const [, name, type, data] = line.trim().split(",");
    if (name === machine && type === "state") return data;
  }
  return undefined;
}

/** Decodes the escapes of machine-readable output. */
function readData(data: string): string {
  return data.trim().replaceAll("%!(VAGRANT_COMMA)", ",").replaceAll("\\n", "\n");
}
