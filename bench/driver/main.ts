import { parseArgs } from "node:util";
import { startTestHost } from "../../hack/lib/test-host.ts";
import { besideRawExec } from "./beside-raw-exec.ts";
import { installPlugin, measureStartUp } from "./install-plugin.ts";
import { InstalledPlugin } from "./installed-plugin.ts";
import { measureTasks } from "./measure-tasks.ts";

/**
 * Measures what the installed plugin costs: `driver [--tasks N] [--seconds N]`. Needs root. Times are medians of consecutive
 * calls over the plugin's socket. CPU time is that of the plugin's own process, without the nerdctl processes that it starts.
 */
export async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { tasks: { type: "string", default: "20" }, seconds: { type: "string", default: "30" } },
  });
  const host = await startTestHost();
  try {
    const launcher = await installPlugin(host.dir);
    const startUp = await measureStartUp(launcher, host.dir);
    const plugin = await InstalledPlugin.launch(launcher);
    try {
      const { tasks, seconds } = values;
      const costs = await measureTasks(plugin, host, { tasks: Number(tasks), seconds: Number(seconds) });
      const result = { bench: "driver", ...startUp, ...costs };
      for (const [name, value] of Object.entries(result))
        console.log(name.padEnd(34), typeof value === "number" ? round(value) : value);
      const comparison = await besideRawExec(host, launcher);
      console.log("in a real Nomad".padEnd(34), comparison ?? "Nomad is not built: node hack/nomad/build.ts");
      console.log(JSON.stringify({ ...result, comparison }));
    } finally {
      await plugin.close();
    }
  } finally {
    await host.close();
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
