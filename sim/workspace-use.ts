import assert from "node:assert/strict";
import { type SubscribeResponse, WorkspaceManagerService, WorkspacePhase } from "@forage/proto/core";
import {
  DownloadContentRequest,
  WorkspaceContentServiceService,
} from "@forage/proto/forage/workspaces/v1/content";
import { ContentStage } from "@forage/proto/forage/workspaces/v1/workspaces";
import type { CallContext } from "../coordinator/src/rpc/caller.ts";
import type { WorkspaceHandlers } from "../coordinator/src/workspaces/open-workspaces.ts";
import { FakeWorkspaceNode } from "../coordinator/test/support/workspaces/fake-workspace-node.ts";
import { aStart } from "../coordinator/test/support/workspaces/workspace-world.ts";
import type { CalmFleet } from "./calm-fleet.ts";
import { DirectNodeTransport } from "./direct-node-transport.ts";
import { imageOf } from "./fleet/programs.ts";
import { clientContext } from "./fleet/sim-coordinator.ts";

/** Workspaces that have one instance after the other, each of which restores the backup of the last one. */
const WORKSPACES = 4;
/** The size of a group of lives. In each group one life ends by a time-out, and another because its content can't be made. */
const PERIOD = 8;
const [TIMES_OUT, FAILS] = [3, 7];
const BROKEN = "broken";
const START_LIMIT_MS = 120_000;
/** This is longer than the time-out of an idle workspace. */
const STOP_LIMIT_MS = 600_000;
const DOWNLOAD = WorkspaceContentServiceService.downloadContent;
const { RUNNING, STOPPED } = WorkspacePhase;

/** The users of workspaces, and the nodes that hold the content. */
export class WorkspaceUse {
  readonly #fleet: CalmFleet;
  readonly #handlers: WorkspaceHandlers;
  readonly #nodes: readonly FakeWorkspaceNode[];
  #lives = 0;

  /** The coordinator must be up. */
  constructor(fleet: CalmFleet) {
    this.#fleet = fleet;
    this.#handlers = fleet.coordinator.workspaces.handlers;
    const { node: handlers } = this.#handlers;
    this.#nodes = fleet.nodes.map(({ name }) => {
      const node = new FakeWorkspaceNode(
        new DirectNodeTransport({ node: name, handlers, clock: fleet.time }),
      );
      node.behaviour.initialize = ({ metaId }) => ({
        stage: metaId === BROKEN ? ContentStage.FAILED : ContentStage.READY,
      });
      return node;
    });
  }

  /** The number of archives in the content store. */
  async archives(): Promise<number> {
    let count = 0;
    for await (const _ of this.#fleet.content.list("")) count++;
    return count;
  }

  /** Starts an instance, uses it, backs it up and waits until it has stopped. Its record goes later. */
  async live(): Promise<void> {
    const number = this.#lives++;
    const fails = number % PERIOD === FAILS;
    const id = `instance-${number}`;
    const metadata = { metaId: fails ? BROKEN : `workspace-${number % WORKSPACES}` };
    const spec = { workspaceImage: imageOf("good", number % WORKSPACES) };
    const { manager } = this.#handlers;
    const over = new AbortController();
    const context = contextOf(WorkspaceManagerService.startWorkspace, over.signal);
    const phases = new Phases(this.#fleet, id);
    try {
      await manager.startWorkspace(aStart({ id, servicePrefix: id, metadata, spec }), context);
      if (!fails) {
        await phases.reach(RUNNING, START_LIMIT_MS);
        await this.#use(id, number, over.signal);
        if (number % PERIOD === TIMES_OUT) await manager.setTimeout({ id, duration: "5m" }, context);
        else await manager.stopWorkspace({ id, policy: 0 }, context);
      }
      await phases.reach(STOPPED, STOP_LIMIT_MS);
    } finally {
      phases.close();
      over.abort();
    }
  }

  /** Breaks the streams of the nodes, which open new ones. */
  reconnect(): void {
    for (const node of this.#nodes) {
      node.disconnect();
      node.connect();
    }
  }

  close(): void {
    for (const node of this.#nodes) {
      assert.equal(node.ended, undefined);
      node.close();
    }
  }

  async #use(id: string, number: number, signal: AbortSignal): Promise<void> {
    const { manager, contents } = this.#handlers;
    const context = contextOf(WorkspaceManagerService.backupWorkspace, signal);
    await manager.markActive({ id, closed: false }, context);
    await manager.controlPort({ id, expose: true, spec: { port: 8080, visibility: 0, url: "" } }, context);
    await manager.backupWorkspace({ id }, context);
    await manager.takeSnapshot({ id, returnImmediately: number % 2 === 0 }, context);
    assert.ok(typeof contents.downloadContent === "function");
    const download = DownloadContentRequest.fromPartial({ of: { $case: "instanceId", value: id } });
    if (number % PERIOD === 0)
      for await (const _ of contents.downloadContent(download, contextOf(DOWNLOAD, signal)));
  }
}

/** Subscribes to the statuses of one instance. */
class Phases {
  readonly #time: CalmFleet["time"];
  readonly #id: string;
  readonly #stop: () => void;
  #phase: WorkspacePhase = WorkspacePhase.UNKNOWN;
  #wake = (): void => {};

  constructor({ time, coordinator }: CalmFleet, id: string) {
    this.#time = time;
    this.#id = id;
    const { subscribe } = coordinator.workspaces.handlers.manager;
    assert.ok("push" in subscribe);
    this.#stop = subscribe.push(
      { mustMatch: undefined },
      contextOf(WorkspaceManagerService.subscribe, coordinator.life),
      {
        send: (response, onAccepted) => {
          this.#receive(response);
          queueMicrotask(onAccepted);
        },
        fail: (error) => assert.fail(String(error)),
      },
    );
  }

  /** Throws after the limit. */
  async reach(phase: WorkspacePhase, limitMs: number): Promise<void> {
    let isOver = false;
    const cancel = this.#time.schedule(limitMs, () => {
      isOver = true;
      this.#wake();
    });
    while (this.#phase !== phase && !isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    cancel();
    assert.equal(
      this.#phase,
      phase,
      `${this.#id} is in phase ${this.#phase} and not ${phase} after ${limitMs} ms`,
    );
  }

  close(): void {
    this.#stop();
  }

  #receive({ status }: SubscribeResponse): void {
    if (status?.id !== this.#id) return;
    this.#phase = status.phase;
    this.#wake();
  }
}

function contextOf({ path }: { readonly path: string }, signal: AbortSignal): CallContext {
  return { ...clientContext(signal), method: path };
}
