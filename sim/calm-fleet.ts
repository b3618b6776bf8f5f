import assert from "node:assert/strict";
import { randomOf } from "@forage/common/random";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import type { CoreOptions } from "../coordinator/src/core.ts";
import { encodeRecord } from "../coordinator/src/model/codec.ts";
import { nodeKey } from "../coordinator/src/model/keys.ts";
import { createMemoryStore, type Store } from "../coordinator/src/store/index.ts";
import { MemoryContentStore } from "../coordinator/src/workspaces/content/memory-content-store.ts";
import { WORKSPACES_LABEL } from "../coordinator/src/workspaces/pod/pod-template.ts";
import type { WorkspaceSettings } from "../coordinator/src/workspaces/settings.ts";
import { clockOf } from "./fleet/process-clock.ts";
import { makeSecrets, type Secrets, SimCoordinator } from "./fleet/sim-coordinator.ts";
import { simTime } from "./fleet/sim-time.ts";
import { RealNode } from "./real-node.ts";

export interface CalmFleetOptions {
  readonly nodes: number;
  readonly config: CoreOptions["config"];
  readonly historyRevisions?: number;
  /** Settings of workspaces, whose pods all nodes then take. Default: the coordinator serves none. */
  readonly workspaces?: WorkspaceSettings;
}

/** A coordinator and real agents on virtual time, without faults. A violated rule is an error. */
export class CalmFleet {
  readonly time: VirtualClock = simTime();
  /** The archives of workspaces. */
  readonly content = new MemoryContentStore({ nowMs: this.time.nowMs });
  readonly store: Store;
  readonly coordinator: SimCoordinator;
  readonly nodes: readonly RealNode[];

  /** Starts the coordinator and the agents. The agents connect within a minute. */
  static async start(options: CalmFleetOptions): Promise<CalmFleet> {
    return new CalmFleet(options, await makeSecrets());
  }

  private constructor(options: CalmFleetOptions, secrets: Secrets) {
    const { nodes, config, historyRevisions, workspaces: settings } = options;
    const { time, content } = this;
    const clock = clockOf(time, { aborted: false }, 0);
    this.store = createMemoryStore({ clock, ...(historyRevisions !== undefined && { historyRevisions }) });
    this.coordinator = new SimCoordinator({
      ...{ number: 1, durable: this.store, time, random: randomOf(1), secrets, config, skewMs: 0 },
      workspaces: settings && { settings, content },
      storeDelayMs: () => 1,
      diskFull: () => false,
      fate: () => "done",
      witness: {
        writing: () => () => {},
        up: () => {},
        died: () => {},
        viewListenerFailed: (line) => assert.fail(line),
        fatal: (error) => assert.fail(String(error)),
      },
      note: () => {},
    });
    const labels = settings === undefined ? {} : { [WORKSPACES_LABEL]: "true" };
    this.nodes = Array.from({ length: nodes }, (_, index) => this.#addNode(`n${index + 1}`, labels));
  }

  /** Advances the virtual time. */
  async pass(ms: number): Promise<void> {
    await this.time.runUntil(this.time.nowMs() + ms);
  }

  end(): void {
    for (const node of this.nodes) node.crash();
    this.coordinator.die();
  }

  #addNode(name: string, labels: Readonly<Record<string, string>>): RealNode {
    const record = NodeRecord.fromPartial({ name, serials: ["01"] });
    void this.store.txn([], [{ type: "put", key: nodeKey(name), value: encodeRecord(NodeRecord, record) }]);
    return new RealNode({
      ...{ name, cpu: "8", labels, time: this.time, random: randomOf(2), skewMs: 0 },
      dial: (node) => {
        const { coordinator } = this;
        if (!coordinator.up) return undefined;
        return { handler: coordinator.handler(node), dead: coordinator.life, gate: coordinator.gate };
      },
      registryUp: () => true,
      witness: {
        ...{ assigned: () => {}, starts: () => {}, ended: () => {}, removed: () => {} },
        violation: (what) => assert.fail(what),
      },
      note: () => {},
    });
  }
}
