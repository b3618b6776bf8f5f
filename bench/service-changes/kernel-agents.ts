import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { runCommand } from "../../agent/src/network/run-command.ts";
import type { CoordinatorProcess } from "../fleet/coordinator-process.ts";
import type { AppliedRules, KernelAgentOptions } from "./kernel-agent.ts";

/** Agents with rules in the kernel, each a process with its own network namespace. Needs root. */
export class KernelAgents {
  readonly #children: { readonly child: ChildProcess; readonly network: string }[] = [];

  get count(): number {
    return this.#children.length;
  }

  async start(
    { address, caPem }: CoordinatorProcess,
    token: string,
    count: number,
    onApplied: (applied: AppliedRules) => void,
  ): Promise<void> {
    for (let index = 0; index < count; index++) {
      const name = `k${index}`;
      const network = `fgb-${process.pid}-${name}`;
      await runCommand("ip", ["netns", "add", network]);
      await runCommand("ip", ["-n", network, "link", "set", "lo", "up"]);
      await runCommand("ip", ["-n", network, "address", "add", "10.64.0.1/16", "dev", "lo"]);
      const options: KernelAgentOptions = { address, caPem, token, name, network };
      const child = fork(join(import.meta.dirname, "kernel-agent.ts"), [JSON.stringify(options)]);
      child.on("message", (applied) => onApplied(applied as AppliedRules));
      this.#children.push({ child, network });
    }
  }

  async close(): Promise<void> {
    for (const { child, network } of this.#children) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      if (child.exitCode === null) {
        child.kill("SIGTERM");
        await ended;
      }
      await runCommand("ip", ["netns", "del", network]);
    }
  }
}

export type { AppliedRules };
