import { randomUUID } from "node:crypto";
import { lstat, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { ContentStage, WorkspaceOrder, WorkspaceReport } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { NoteDamage } from "../damage-reports.ts";
import { setAside, syncDirectory, writeFilesDurably } from "../journal/durable-files.ts";
import { type JournalKey, WrongKeyError } from "../journal/journal-key.ts";
import { decodeRecord, encodeRecord, RECORD_KIND } from "../journal/record-frame.ts";
import { WorkspaceError } from "./workspace-error.ts";
import { isInstanceId, type WorkspaceLayout } from "./workspace-layout.ts";

/** The record of a workspace on disk. */
export interface WorkspaceRecord {
  readonly order: WorkspaceOrder;
  readonly report: WorkspaceReport;
}

export interface WorkspaceRecordsOptions {
  readonly layout: WorkspaceLayout;
  /** Orders contain credentials, so they are encrypted like pods. */
  readonly key: JournalKey;
  readonly noteDamage: NoteDamage;
}

const ORDER_REMEDY = "its content is kept, and the coordinator sends the order again";
const STATE_REMEDY =
  "whether the content is complete is read from the disk; archives that were stored are stored again";

/** The agent's durable records of workspaces. A record is on disk once the promise resolves. */
export class WorkspaceRecords {
  readonly #options: WorkspaceRecordsOptions;

  constructor(options: WorkspaceRecordsOptions) {
    this.#options = options;
  }

  /** Reads all workspaces. Those with an unreadable order are left out; their directories stay. */
  async load(): Promise<ReadonlyMap<string, WorkspaceRecord>> {
    const { layout } = this.#options;
    await mkdir(layout.root, { recursive: true, mode: 0o700 });
    const found = new Map<string, WorkspaceRecord>();
    for (const id of await readdir(layout.root)) {
      if (!isInstanceId(id)) continue;
      const order = await this.#readOrder(id);
      if (order !== undefined) found.set(id, { order, report: await this.readReport(id) });
    }
    return found;
  }

  async saveOrder(order: WorkspaceOrder): Promise<void> {
    const { layout, key } = this.#options;
    const id = order.instanceId;
    await mkdir(layout.home(id), { recursive: true, mode: 0o700 });
    const bytes = encodeRecord(
      RECORD_KIND.workspaceOrder,
      await key.seal(boundTo(id), WorkspaceOrder.encode(order).finish()),
    );
    await writeFilesDurably(layout.home(id), [{ name: "order", bytes }]);
    await syncDirectory(layout.root);
  }

  /** Stores secrets that can't be fetched again. If there are none, deletes the file. */
  async saveSecrets(id: string, secrets: Readonly<Record<string, string>>): Promise<void> {
    const { layout, key } = this.#options;
    const path = layout.secrets(id);
    if (Object.keys(secrets).length === 0) return await rm(path, { force: true });
    const bytes = encodeRecord(
      RECORD_KIND.workspaceSecrets,
      await key.seal(boundTo(id), Buffer.from(JSON.stringify(Object.entries(secrets)))),
    );
    await writeFilesDurably(layout.home(id), [{ name: basename(path), bytes }]);
  }

  /** Returns the stored secrets. Unreadable ones are fetched again, if their server allows it. */
  async readSecrets(id: string): Promise<Readonly<Record<string, string>>> {
    const path = this.#options.layout.secrets(id);
    try {
      const sealed = decodeRecord(RECORD_KIND.workspaceSecrets, await readFile(path));
      const entries: unknown = JSON.parse(this.#options.key.unseal(boundTo(id), sealed).toString());
      return isEntries(entries) ? Object.fromEntries(entries) : {};
    } catch (error) {
      if (!isMissing(error)) await this.#damaged(path, error, "one-time secrets are fetched again");
      return {};
    }
  }

  async saveReport(report: WorkspaceReport): Promise<void> {
    const { layout } = this.#options;
    const bytes = encodeRecord(RECORD_KIND.workspaceState, WorkspaceReport.encode(report).finish());
    await writeFilesDurably(layout.home(report.instanceId), [{ name: "state", bytes }]);
  }

  /** Returns the recorded report. If there is none, derives it from the directory. */
  async readReport(id: string): Promise<WorkspaceReport> {
    const path = this.#options.layout.state(id);
    try {
      return WorkspaceReport.decode(decodeRecord(RECORD_KIND.workspaceState, await readFile(path)));
    } catch (error) {
      if (!isMissing(error)) await this.#damaged(path, error, STATE_REMEDY);
    }
    return WorkspaceReport.fromPartial({ instanceId: id, stage: await this.#stageOnDisk(id) });
  }

  /** Returns the stage of the content on disk. Content in an image is visible only while the image is mounted. */
  async #stageOnDisk(id: string): Promise<ContentStage> {
    const { layout } = this.#options;
    if (await exists(layout.content(id))) return ContentStage.READY;
    return (await exists(layout.image(id))) ? ContentStage.UNSPECIFIED : ContentStage.INITIALIZING;
  }

  /** Moves the workspace's directory to the discarded ones in one step. Does nothing if there is none. */
  async discard(id: string): Promise<void> {
    const { layout } = this.#options;
    const home = layout.home(id);
    if (!(await exists(home))) return;
    await this.#makeDiscarded(id);
    await rename(home, join(layout.discardedOf(id), randomUUID()));
    await syncDirectory(layout.root);
  }

  /**
   * Creates the directory for discarded files. If the disk is full, first deletes files that the deletion doesn't need.
   */
  async #makeDiscarded(id: string): Promise<void> {
    const { layout } = this.#options;
    const make = () => mkdir(layout.discardedOf(id), { recursive: true, mode: 0o700 });
    try {
      await make();
    } catch (error) {
      if (WorkspaceError.from(error).code !== "NO_ROOM") throw error;
      for (const path of [layout.archives(id), layout.state(id)])
        await rm(path, { recursive: true, force: true });
      await make();
    }
  }

  async #readOrder(id: string): Promise<WorkspaceOrder | undefined> {
    const { layout, key } = this.#options;
    const path = layout.order(id);
    try {
      const sealed = decodeRecord(RECORD_KIND.workspaceOrder, await readFile(path));
      const order = WorkspaceOrder.decode(key.unseal(boundTo(id), sealed));
      if (order.instanceId !== id) throw new Error(`it is the order of workspace ${order.instanceId}`);
      return order;
    } catch (error) {
      if (!isMissing(error)) await this.#damaged(path, error, ORDER_REMEDY);
      return undefined;
    }
  }

  async #damaged(path: string, error: unknown, remedy: string): Promise<void> {
    // With the right key the file is readable again.
    if (!(error instanceof WrongKeyError)) await setAside(dirname(path), basename(path));
    this.#options.noteDamage(path, messageOf(error), remedy);
  }
}

export async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => {
      if (isMissing(error)) return false;
      throw error;
    },
  );
}

function isEntries(value: unknown): value is [string, string][] {
  if (!Array.isArray(value)) return false;
  return value.every(
    (it) => Array.isArray(it) && it.length === 2 && it.every((text) => typeof text === "string"),
  );
}

function boundTo(id: string): string {
  return `workspace ${id}`;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
