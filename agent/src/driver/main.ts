import { parseArgs } from "node:util";
import { messageOf } from "@forage/common/message-of";
import { systemClock } from "../clock.ts";
import { hclog } from "./plugin/hclog.ts";
import { NomadDriver } from "./plugin/nomad-driver.ts";
import { containerdObserver } from "./plugin/observe-containerd.ts";
import { readPluginEnvironment } from "./plugin/plugin-environment.ts";
import { runPlugin } from "./plugin/run-plugin.ts";
import { openTaskDriver } from "./tasks/open-task-driver.ts";

const VERSION = "0.1.0";
const EXIT_FAILED = 1;

/** Runs `forage-nomad-driver`: the task driver as a plugin that Nomad starts. */
async function main(): Promise<void> {
  const environment = readPluginEnvironment(process.env);
  const network = readNetwork(process.argv.slice(2));
  surviveNomad();
  const clock = systemClock;
  const log = hclog(
    (line) => void process.stderr.write(line),
    () => new Date(clock.nowMs()),
  );
  const driver = new NomadDriver({
    version: VERSION,
    clock,
    observe: (options) => containerdObserver(options),
    openTasks: (options) => openTaskDriver({ options, clock, log }),
  });
  const plugin = await runPlugin({
    environment,
    network,
    driver,
    log,
    writeHandshake: (line) => void process.stdout.write(line),
    nowMs: clock.nowMs,
    onStopped: () => process.exit(0),
  });
  process.on("SIGTERM", () => plugin.stop());
  process.on("uncaughtException", (error) => {
    log("error", "uncaught-exception", { error });
    // Nomad restarts the plugin, and tasks keep running.
    process.exit(EXIT_FAILED);
  });
}

function readNetwork(args: readonly string[]): "unix" | "tcp" {
  const { values } = parseArgs({ args: [...args], options: { listen: { type: "string", default: "unix" } } });
  if (values.listen === "unix" || values.listen === "tcp") return values.listen;
  throw new Error(`--listen must be unix or tcp, and is ${JSON.stringify(values.listen)}`);
}

/**
 * Keeps the plugin running when Nomad ends, because a new Nomad attaches to it. Nomad's end breaks the plugin's pipes,
 * and Ctrl-C signals the whole process group.
 */
function surviveNomad(): void {
  process.on("SIGINT", () => undefined);
  process.on("SIGPIPE", () => undefined);
  process.stdout.on("error", () => undefined);
  process.stderr.on("error", () => undefined);
}

main().catch((error: unknown) => {
  process.stderr.write(`forage-nomad-driver: ${messageOf(error)}\n`);
  process.exit(EXIT_FAILED);
});
