import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { until } from "./until.ts";
import type { WorkspaceHost } from "./workspace-host.ts";

/** An agent in a separate process, on a host that outlives it. */
export class KillableAgent {
  readonly host: WorkspaceHost;
  #child: ChildProcess | undefined;

  constructor(t: TestContext, host: WorkspaceHost) {
    this.host = host;
    t.after(() => this.kill());
  }

  start(): void {
    const program = join(import.meta.dirname, "workspace-agent.ts");
    const { layout, store, key } = this.host;
    const args = [program, layout.root, String(store.port), key.toString("hex")];
    this.#child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit"] });
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Kills the agent when the condition holds, and restarts it. */
  async crashWhen(what: string, holds: () => boolean): Promise<void> {
    await until(what, holds);
    await this.kill();
    this.start();
  }
}
