import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CreateJoinTokenRequest, WatchEventsRequest } from "@forage/proto/forage/operator/v1/operator";
import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { watchRollout } from "../src/api/forage/watch-rollout.ts";
import { watchEvents } from "../src/api/operator/events.ts";
import { operatorService } from "../src/api/operator/service.ts";
import { readConfig } from "../src/config.ts";
import { sweepExpiredTokens } from "../src/control/expired-tokens.ts";
import { encodeRecord } from "../src/model/codec.ts";
import { nodeKey } from "../src/model/keys.ts";
import { createMemoryStore, type Store } from "../src/store/index.ts";
import { clockOf } from "./sim/process-clock.ts";
import { imageOf, type ProgramKind } from "./sim/programs.ts";
import { clientContext, makeSecrets, SimCoordinator } from "./sim/sim-coordinator.ts";
import { SimNode } from "./sim/sim-node.ts";
import { simTime } from "./sim/sim-time.ts";
import { randomOf } from "./support/random.ts";
import { aRequest } from "./support/requests.ts";

const HOUR_MS = 3_600_000;
const DAYS = 30;
/** After this time every limit on what is kept has been reached: 500 finished rollouts of a namespace, 100 events. */
const FULL_AFTER_DAYS = 18;
const CHANGES_PER_HOUR = 2;

test("thirty days of work leave the heap, listeners, timers and records where they were", {
  timeout: 600_000,
}, async (t) => {
  const fleet = await Fleet.start();
  const cpuBefore = process.cpuUsage();
  await fleet.work(FULL_AFTER_DAYS);
  const before = await fleet.measure();
  await fleet.work(DAYS - FULL_AFTER_DAYS);
  const after = await fleet.measure();
  fleet.end();
  const { user, system } = process.cpuUsage(cpuBefore);
  t.diagnostic(JSON.stringify({ before, after, cpuSeconds: (user + system) / 1e6 }));
  for (const [prefix, count] of Object.entries(after.records)) {
    const allowed = 1.05 * (before.records[prefix] ?? 0) + 2;
    assert.ok(count <= allowed, `${before.records[prefix]} records below ${prefix}/ became ${count}`);
  }
  assert.equal(after.listeners, before.listeners);
  assert.ok(after.timers <= before.timers + 2, `${before.timers} timers became ${after.timers}`);
  // Compiled code and the shapes of objects settle late; a leak of 4 kB for each of 576 changes fails.
  assert.ok(after.heapBytes < before.heapBytes + 2_000_000, `${before.heapBytes} became ${after.heapBytes}`);
});

interface Measure {
  /** The number of records by their prefix. */
  readonly records: Readonly<Record<string, number>>;
  /** For the end of the coordinator's life. */
  readonly listeners: number;
  readonly timers: number;
  readonly heapBytes: number;
}

/** A coordinator with two nodes, and what its users do to it. */
class Fleet {
  readonly #time = simTime();
  readonly #store: Store;
  readonly #coordinator: SimCoordinator;
  readonly #nodes: readonly SimNode[];
  readonly #stop: () => void;
  #changes = 0;

  static async start(): Promise<Fleet> {
    const fleet = new Fleet(await makeSecrets());
    await fleet.#pass(60_000);
    return fleet;
  }

  private constructor(secrets: Awaited<ReturnType<typeof makeSecrets>>) {
    const time = this.#time;
    const clock = clockOf(time, { aborted: false }, 0);
    this.#store = createMemoryStore({ clock, historyRevisions: 500 });
    this.#coordinator = new SimCoordinator({
      number: 1,
      durable: this.#store,
      time,
      random: randomOf(1),
      secrets,
      config: CONFIG,
      skewMs: 0,
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
    this.#nodes = ["n1", "n2"].map((name) => this.#addNode(name));
    this.#stop = sweepExpiredTokens({ store: this.#store, clock, log: pino({ level: "silent" }) });
  }

  async work(days: number): Promise<void> {
    for (let left = days * 24 * CHANGES_PER_HOUR; left > 0; left--) {
      const change = this.#change(this.#changes++).then(undefined, (error: unknown) => error);
      await this.#pass(HOUR_MS / CHANGES_PER_HOUR);
      assert.equal(await change, undefined);
    }
  }

  /** Everything comes to rest first. */
  async measure(): Promise<Measure> {
    await this.#pass(2 * HOUR_MS);
    const records: Record<string, number> = {};
    for (const { key } of (await this.#store.range("")).records) {
      const prefix = key.slice(0, key.indexOf("/"));
      records[prefix] = (records[prefix] ?? 0) + 1;
    }
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
    }
    return {
      records,
      listeners: getEventListeners(this.#coordinator.life, "abort").length,
      timers: this.#time.pending,
      heapBytes: process.memoryUsage().heapUsed,
    };
  }

  end(): void {
    this.#stop();
    for (const node of this.#nodes) node.crash();
    this.#coordinator.die();
  }

  async #change(number: number): Promise<void> {
    const context = clientContext(this.#coordinator.life);
    const { forage } = this.#coordinator;
    const round = Math.floor(number / 8);
    const apply = async (
      kind: "containerService" | "job",
      name: string,
      image: ProgramKind,
      version: number,
    ) => {
      const value = { container: { name: "main", image: imageOf(image, version) } };
      const resource = ForageResource.fromPartial({ name, spec: { $case: kind, value } });
      const { rolloutId } = await forage.applyResources(
        aRequest(`apply-${number}`, [resource], { bundle: name }),
        context,
      );
      void this.#watch(rolloutId);
    };
    switch (number % 8) {
      case 0:
        return apply("containerService", "web", "good", round);
      case 1:
        // The same again: nothing changes.
        return apply("containerService", "web", "good", round);
      case 2:
        return apply("job", "import", "task", round);
      case 3:
        return apply("containerService", "broken", "crashing", round);
      case 4:
        return this.#makeTokens();
      case 5:
        return this.#reconnect(round);
      case 6:
        return apply("containerService", "passing", "good", round);
      default:
        await forage.deleteResources({ namespace: "shop", labels: { bundle: "passing" } }, context);
    }
  }

  /** Follows a rollout, and stops after a time limit. */
  async #watch(rolloutId: string): Promise<void> {
    const gone = new AbortController();
    this.#time.schedule(5 * 60_000, () => gone.abort());
    const { rollouts } = this.#coordinator.core.control;
    for await (const _ of watchRollout(rolloutId, rollouts, gone.signal));
  }

  async #makeTokens(): Promise<void> {
    const { operator } = this.#coordinator.core.services;
    const service = operatorService(operator);
    const context = clientContext(this.#coordinator.life);
    await service.createJoinToken(CreateJoinTokenRequest.fromPartial({ ttlSeconds: 600 }), context);
  }

  async #reconnect(round: number): Promise<void> {
    const [first, second] = this.#nodes;
    first?.breakStream();
    if (round % 2 === 0) second?.restartAgent(1_000);
    const gone = new AbortController();
    this.#time.schedule(60_000, () => gone.abort());
    const context = clientContext(gone.signal);
    const request = WatchEventsRequest.fromPartial({ namespace: "shop" });
    for await (const _ of watchEvents(request, context, this.#coordinator.core.services.operator));
  }

  async #pass(ms: number): Promise<void> {
    await this.#time.runUntil(this.#time.nowMs() + ms);
  }

  #addNode(name: string): SimNode {
    const record = NodeRecord.fromPartial({ name, serials: ["01"] });
    void this.#store.txn([], [{ kind: "put", key: nodeKey(name), value: encodeRecord(NodeRecord, record) }]);
    return new SimNode({
      name,
      cpu: "8",
      labels: {},
      time: this.#time,
      random: randomOf(2),
      skewMs: 0,
      dial: (node) => {
        const coordinator = this.#coordinator;
        if (!coordinator.up) return undefined;
        return { handler: coordinator.handler(node), dead: coordinator.life, gate: coordinator.gate };
      },
      registryUp: () => true,
      witness: {
        assigned: () => {},
        starts: () => {},
        ended: () => {},
        removed: () => {},
        violation: (what) => assert.fail(what),
      },
      note: () => {},
    });
  }
}

const CONFIG = {
  ...readConfig(["--data-dir", "/nonexistent"], {}),
  // Fewer heartbeats make the days pass faster.
  heartbeatIntervalSeconds: 60,
  autoscaling: { intervalSeconds: 300 },
  events: { maxCount: 100, maxMegabytes: 1 },
  rollout: { progressDeadlineSeconds: 120, placementDeadlineSeconds: 20, stableSeconds: 1 },
};

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
}
