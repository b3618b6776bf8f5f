import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { CreateJoinTokenRequest, WatchEventsRequest } from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { watchRollout } from "../coordinator/src/api/forage/watch-rollout.ts";
import { watchEvents } from "../coordinator/src/api/operator/events.ts";
import { operatorService } from "../coordinator/src/api/operator/service.ts";
import { readConfig } from "../coordinator/src/config.ts";
import { sweepExpiredTokens } from "../coordinator/src/control/expired-tokens.ts";
import { aRequest } from "../coordinator/test/support/requests.ts";
import { CalmFleet } from "./calm-fleet.ts";
import { clockOf } from "./fleet/process-clock.ts";
import { imageOf, type ProgramKind } from "./fleet/programs.ts";
import { clientContext } from "./fleet/sim-coordinator.ts";

const HOUR_MS = 3_600_000;
const DAYS = 30;
/** After this time every limit on what is kept has been reached: 500 finished rollouts of a namespace, 100 events. */
const FULL_AFTER_DAYS = 18;
const CHANGES_PER_HOUR = 2;

/**
 * Plays thirty days of work on virtual time and prints what a coordinator and two agents keep before and after the last twelve. It is
 * a program of its own, because a test runner follows each promise, which takes a third of the time.
 */
async function main(): Promise<void> {
  const fleet = await Soaked.start();
  await fleet.work(FULL_AFTER_DAYS);
  const before = await fleet.measure();
  await fleet.work(DAYS - FULL_AFTER_DAYS);
  const after = await fleet.measure();
  fleet.end();
  const { user, system } = process.cpuUsage();
  const soak: Soak = { before, after, cpuSeconds: (user + system) / 1e6 };
  console.log(JSON.stringify(soak));
}

export interface Soak {
  readonly before: Measure;
  readonly after: Measure;
  readonly cpuSeconds: number;
}

export interface Measure {
  /** The number of records by their prefix. */
  readonly records: Readonly<Record<string, number>>;
  /** Listeners for the end of the coordinator's life. */
  readonly listeners: number;
  readonly timers: number;
  readonly heapBytes: number;
}

/** A coordinator with two real agents, and what its users do to it. */
class Soaked {
  readonly #fleet: CalmFleet;
  readonly #stop: () => void;
  #changes = 0;

  static async start(): Promise<Soaked> {
    const fleet = await CalmFleet.start({ nodes: 2, config: CONFIG, historyRevisions: 500 });
    await fleet.pass(60_000);
    return new Soaked(fleet);
  }

  private constructor(fleet: CalmFleet) {
    const { time, store } = fleet;
    this.#fleet = fleet;
    const clock = clockOf(time, { aborted: false }, 0);
    this.#stop = sweepExpiredTokens({ store, clock, log: pino({ level: "silent" }) });
  }

  async work(days: number): Promise<void> {
    for (let left = days * 24 * CHANGES_PER_HOUR; left > 0; left--) {
      const change = this.#change(this.#changes++).then(undefined, (error: unknown) => error);
      await this.#fleet.pass(HOUR_MS / CHANGES_PER_HOUR);
      assert.equal(await change, undefined);
    }
  }

  /** Measures after all activity has ended. */
  async measure(): Promise<Measure> {
    await this.#fleet.pass(2 * HOUR_MS);
    const records: Record<string, number> = {};
    for (const { key } of (await this.#fleet.store.range("")).records) {
      const prefix = key.slice(0, key.indexOf("/"));
      records[prefix] = (records[prefix] ?? 0) + 1;
    }
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
    }
    return {
      records,
      listeners: getEventListeners(this.#fleet.coordinator.life, "abort").length,
      timers: this.#fleet.time.pending,
      heapBytes: process.memoryUsage().heapUsed,
    };
  }

  end(): void {
    this.#stop();
    this.#fleet.end();
  }

  async #change(number: number): Promise<void> {
    const context = clientContext(this.#fleet.coordinator.life);
    const { forage } = this.#fleet.coordinator;
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
    this.#fleet.time.schedule(5 * 60_000, () => gone.abort());
    const { rollouts } = this.#fleet.coordinator.core.control;
    for await (const _ of watchRollout(rolloutId, rollouts, gone.signal));
  }

  async #makeTokens(): Promise<void> {
    const { operator } = this.#fleet.coordinator.core.services;
    const service = operatorService(operator);
    const context = clientContext(this.#fleet.coordinator.life);
    await service.createJoinToken(CreateJoinTokenRequest.fromPartial({ ttlSeconds: 600 }), context);
  }

  async #reconnect(round: number): Promise<void> {
    const [first, second] = this.#fleet.nodes;
    first?.breakStream();
    if (round % 2 === 0) second?.restartAgent(1_000);
    const gone = new AbortController();
    this.#fleet.time.schedule(60_000, () => gone.abort());
    const context = clientContext(gone.signal);
    const request = WatchEventsRequest.fromPartial({ namespace: "shop" });
    for await (const _ of watchEvents(request, context, this.#fleet.coordinator.core.services.operator));
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

/** Node offers it with --expose-gc only. */
function collectGarbage(): void {
  assert.ok(gc, "start it with --expose-gc");
  gc();
}

await main();
