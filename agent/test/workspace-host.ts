import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { LogEntry } from "@forage/common/log";
import { WorkspaceOrder } from "@forage/proto/forage/workspaces/v1/workspaces";
import { run } from "../../hack/lib/run.ts";
import { systemClock } from "../src/clock.ts";
import { JournalKey } from "../src/journal/journal-key.ts";
import { ChildRunner } from "../src/volumes/run-child.ts";
import { HostContent } from "../src/workspaces/host-content.ts";
import type { RefuseAddress } from "../src/workspaces/initialize/reachable.ts";
import { syncWorkspaces } from "../src/workspaces/open-workspaces.ts";
import { WorkspaceLayout } from "../src/workspaces/workspace-layout.ts";
import { WorkspaceRecords } from "../src/workspaces/workspace-records.ts";
import { Workspaces } from "../src/workspaces/workspaces.ts";
import { WorkspaceStore } from "./workspace-store.ts";

/** The reason why workspaces can't be tested: only root can change their content. */
export const whyNoWorkspaces = process.getuid?.() === 0 ? undefined : "needs root";

export const BACK_OFF = { baseMs: 50, capMs: 200 };

/** A node's part of workspaces with a coordinator in the same process. */
export class WorkspaceHost {
  readonly store = new WorkspaceStore();
  readonly layout: WorkspaceLayout;
  readonly logged: { event: string; fields: object }[] = [];
  readonly activePods = new Set<string>();
  readonly retried: string[] = [];
  readonly damage: string[] = [];
  readonly key = randomBytes(32);
  /** Decides which addresses initializers must not reach. Default: none, because tests serve on loopback. */
  refuse: RefuseAddress = () => undefined;
  proxyUrl = "";
  #running: { workspaces: Workspaces; closing: AbortController; sync: Promise<void> } | undefined;

  private constructor(directory: string) {
    this.layout = new WorkspaceLayout(directory);
  }

  /** Sets up a host. `diskMebibytes` limits its disk, which needs private mounts. */
  static async setUp(t: TestContext, { diskMebibytes = 0 } = {}): Promise<WorkspaceHost> {
    const root = await realpath(mkdtempSync(join(tmpdir(), "forage-workspaces-")));
    const directory = join(root, "workspaces");
    await mkdir(directory, { mode: 0o700 });
    const limited = diskMebibytes > 0;
    if (limited) await run("mount", ["-t", "tmpfs", "-o", `size=${diskMebibytes}m`, "tmpfs", directory]);
    const host = new WorkspaceHost(directory);
    await host.store.start();
    t.after(async () => {
      await host.stop();
      host.store.close();
      if (limited) await run("umount", ["--lazy", directory]);
      rmSync(root, { recursive: true, force: true });
    });
    return host;
  }

  /** Starts the agent's part. The previous one must have been stopped. */
  async start(): Promise<Workspaces> {
    await this.stop();
    const { layout, store } = this;
    const note = ({ event, ...fields }: LogEntry) => void this.logged.push({ event, fields });
    const log = { info: note, warn: note };
    const noteDamage = (path: string) => void this.damage.push(path);
    const records = new WorkspaceRecords({ layout, key: new JournalKey(this.key, "test"), noteDamage });
    const actions = new HostContent({
      ...{ layout, records, connect: store.connect, warn: note },
      children: new ChildRunner(),
      git: {
        ...{ proxyUrl: this.proxyUrl, refuse: this.refuse },
        secrets: {
          read: (id) => records.readSecrets(id),
          write: (id, kept) => records.saveSecrets(id, kept),
        },
      },
    });
    const [clock, random] = [systemClock, () => 0.01];
    const workspaces = await Workspaces.open({ clock, random, records, actions, log, backOff: BACK_OFF });
    const sync = syncWorkspaces(workspaces, { clock, random, log, connect: store.connect });
    workspaces.start({
      active: (podUid) => this.activePods.has(podUid),
      retryStart: (podUid) => void this.retried.push(podUid),
    });
    const closing = new AbortController();
    this.#running = { workspaces, closing, sync: sync.run(closing.signal) };
    return workspaces;
  }

  async stop(): Promise<void> {
    this.#running?.closing.abort();
    await this.#running?.workspaces.close();
    await this.#running?.sync;
    this.#running = undefined;
  }
}

export function anOrder(
  id: string,
  change: Parameters<typeof WorkspaceOrder.fromPartial>[0] = {},
): WorkspaceOrder {
  return WorkspaceOrder.fromPartial({
    ...{ instanceId: id, podUid: `pod-${id}`, owner: "ada", metaId: `meta-${id}` },
    initializer: { spec: { $case: "empty", value: {} } },
    ...change,
  });
}
