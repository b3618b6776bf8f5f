import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { getHeapSpaceStatistics } from "node:v8";
import {
  CreateJoinTokenRequest,
  PutObjectRequest,
  WatchEventsRequest,
} from "@forage/proto/forage/operator/v1/operator";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { watchRollout } from "../coordinator/src/api/forage/watch-rollout.ts";
import { watchEvents } from "../coordinator/src/api/operator/events.ts";
import { operatorService } from "../coordinator/src/api/operator/service.ts";
import { readConfig } from "../coordinator/src/config.ts";
import { sweepExpiredTokens } from "../coordinator/src/control/expired-tokens.ts";
import type { Cursor } from "../coordinator/src/notifications/message.ts";
import { Notifier } from "../coordinator/src/notifications/notifier.ts";
import { NOTIFICATIONS_SCHEMA } from "../coordinator/src/notifications/settings.ts";
import type { CallContext } from "../coordinator/src/rpc/caller.ts";
import { WORKSPACES_SCHEMA } from "../coordinator/src/workspaces/settings.ts";
import { aRequest } from "../coordinator/test/support/requests.ts";
import { CalmFleet } from "./calm-fleet.ts";
import { clockOf } from "./fleet/process-clock.ts";
import { imageOf, type ProgramKind } from "./fleet/programs.ts";
import { clientContext } from "./fleet/sim-coordinator.ts";
import { WorkspaceUse } from "./workspace-use.ts";

const HOUR_MS = 3_600_000;
const DAYS = 30;
/**
 * After this number of days all limits of kept objects are reached: 500 finished rollouts of a namespace, 100 events.
 */
const FULL_AFTER_DAYS = 18;
const CHANGES_PER_HOUR = 2;
/** The number of changes in a round. */
const CHANGES = 12;
/** A workspace begins and ends with every fifth change. */
const CHANGES_PER_WORKSPACE = 5;
/** The receiver of notifications fails at every fifth request. */
const FAILS_EVERY = 5;
/** The prefix of a key, and for records of workspaces their kind, too. */
const PREFIX = /^(?:workspaces\/)?[^/]*/;
const KEY = { name: "KEY", valueSource: { $case: "secretRef", value: { secretName: "key", key: "value" } } };

/**
 * Plays thirty days of work on virtual time, and prints what a coordinator and two agents keep before and after the
 * last twelve days. It is a separate program because a test runner tracks each promise, which takes a third of the
 * time.
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
  /** The number of archives of workspaces. */
  readonly archives: number;
  /** The number of listeners for the end of the coordinator's life. */
  readonly listeners: number;
  /** The numbers of listeners for changes of the cluster and of workspaces, and of users' subscriptions to workspaces. */
  readonly subscribers: readonly number[];
  readonly timers: number;
  /** The memory for objects, without that for compiled code: its size depends on when V8 compiles and forgets functions. */
  readonly objectBytes: number;
}

function objectBytes(): number {
  return getHeapSpaceStatistics()
    .filter(({ space_name: name }) => !/^(?:shared_)?(?:code|trusted)_/.test(name))
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0);
}

/** A coordinator with two real agents, and the actions of its users. */
class Soaked {
  readonly #fleet: CalmFleet;
  readonly #stop: () => void;
  readonly #notifier: Notifier;
  readonly #workspaces: WorkspaceUse;
  #changes = 0;
  #posts = 0;

  static async start(): Promise<Soaked> {
    const fleet = await CalmFleet.start({
      ...{ nodes: 2, config: CONFIG, historyRevisions: 500, workspaces: CONFIG.workspaces },
    });
    await fleet.pass(60_000);
    const context = clientContext(fleet.coordinator.life);
    const put = operatorService(fleet.coordinator.core.services.operator).putObject(
      aSecret("key", "first"),
      context,
    );
    await fleet.pass(60_000);
    await put;
    return new Soaked(fleet);
  }

  private constructor(fleet: CalmFleet) {
    const { time, store } = fleet;
    this.#fleet = fleet;
    this.#workspaces = new WorkspaceUse(fleet);
    const clock = clockOf(time, { aborted: false }, 0);
    const log = pino({ level: "silent" });
    this.#stop = sweepExpiredTokens({ store, clock, log });
    const [settings] = NOTIFICATIONS_SCHEMA.parse([
      { name: "ops", url: "https://hooks.example/", secretFile: "/key", types: ["Normal", "Warning"] },
    ]);
    assert.ok(settings);
    let cursor: Cursor | undefined;
    this.#notifier = new Notifier({
      ...{ settings, cluster: "sim", events: fleet.coordinator.core.events, clock, log },
      readCursor: async () => cursor,
      writeCursor: async (next) => {
        cursor = next;
      },
      post: async () =>
        ++this.#posts % FAILS_EVERY === 0 ? { type: "failed", reason: "busy" } : { type: "delivered" },
    });
  }

  async work(days: number): Promise<void> {
    for (let left = days * 24 * CHANGES_PER_HOUR; left > 0; left--) {
      const number = this.#changes++;
      const work = Promise.all([
        this.#change(number),
        number % CHANGES_PER_WORKSPACE === 0 ? this.#workspaces.live() : undefined,
      ]);
      const failure = work.then(
        () => undefined,
        (error: unknown) => error,
      );
      await this.#fleet.pass(HOUR_MS / CHANGES_PER_HOUR);
      assert.equal(await failure, undefined);
    }
  }

  /** Measures after all activity has ended. */
  async measure(): Promise<Measure> {
    await this.#fleet.pass(2 * HOUR_MS);
    const records: Record<string, number> = {};
    for (const { key } of (await this.#fleet.store.range("")).records) {
      const prefix = key.match(PREFIX)?.[0] ?? key;
      records[prefix] = (records[prefix] ?? 0) + 1;
    }
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
    }
    return {
      records,
      archives: await this.#workspaces.archives(),
      listeners: getEventListeners(this.#fleet.coordinator.life, "abort").length,
      subscribers: this.#subscribers(),
      timers: this.#fleet.time.pending,
      objectBytes: objectBytes(),
    };
  }

  end(): void {
    this.#stop();
    assert.ok(this.#notifier.stats.delivered > 0, "no event was sent to the receiver");
    void this.#notifier.close();
    this.#workspaces.close();
    this.#fleet.end();
  }

  #subscribers(): readonly number[] {
    const { core, workspaces } = this.#fleet.coordinator;
    return [core.state.listenerCount, workspaces.view.listenerCount, workspaces.subscribers.count];
  }

  async #change(number: number): Promise<void> {
    const { coordinator } = this.#fleet;
    const changes = this.#changesOf(Math.floor(number / CHANGES));
    await changes[number % CHANGES]?.(clientContext(coordinator.life), `apply-${number}`);
  }

  /** Returns the changes of one round. The next round makes them with other versions. */
  #changesOf(round: number): readonly ((context: CallContext, applyId: string) => Promise<unknown>)[] {
    const { forage } = this.#fleet.coordinator;
    const { operator } = this.#fleet.coordinator.core.services;
    const apply =
      (bundle: string, ...resources: readonly Resource[]) =>
      async (context: CallContext, applyId: string): Promise<void> => {
        const items = resources.map((it) => ForageResource.fromPartial(it));
        const { rolloutId } = await forage.applyResources(aRequest(applyId, items, { bundle }), context);
        void this.#watch(rolloutId);
      };
    const remove = (bundle: string) => (context: CallContext) =>
      forage.deleteResources({ namespace: "shop", labels: { bundle } }, context);
    const putObject = (name: string, text: string) => (context: CallContext) =>
      operatorService(operator).putObject(aSecret(name, text), context);
    return [
      apply("web", service("web", "good", round)),
      // The second request changes nothing.
      apply("web", service("web", "good", round)),
      apply("import", job("import", round)),
      apply("broken", service("broken", "crashing", round)),
      () => this.#makeTokens(),
      () => this.#reconnect(round),
      apply("passing", service("passing", "good", round, [KEY])),
      putObject("key", `version ${round}`),
      apply("front", port("web", round), route(`v${round}.example`)),
      apply("report", cronJob("report", round)),
      async (context) => {
        await putObject(`passing-${round}`, "value")(context);
        const name = { namespace: "shop", kind: "secret", name: `passing-${round - 1}` };
        if (round > 0) await operatorService(operator).deleteObject(name, context);
        if (round % 3 === 2) await remove("report")(context);
        if (round % 4 === 2) await remove("front")(context);
      },
      remove("passing"),
    ];
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
    this.#workspaces.reconnect();
    const gone = new AbortController();
    this.#fleet.time.schedule(60_000, () => gone.abort());
    const context = clientContext(gone.signal);
    const request = WatchEventsRequest.fromPartial({ namespace: "shop" });
    for await (const _ of watchEvents(request, context, this.#fleet.coordinator.core.services.operator));
  }
}

type Resource = Parameters<typeof ForageResource.fromPartial>[0];

function service(name: string, image: ProgramKind, version: number, env: readonly object[] = []): Resource {
  const container = { name: "main", image: imageOf(image, version), env: [...env] };
  return { name, spec: { $case: "containerService", value: { container } } } as Resource;
}

function job(name: string, version: number): Resource {
  const value = { container: { name: "main", image: imageOf("task", version) } };
  return { name, spec: { $case: "job", value } };
}

/** Returns a cron job that runs twice a day. */
function cronJob(name: string, version: number): Resource {
  const container = { name: "main", image: imageOf("task", version) };
  return { name, spec: { $case: "cronJob", value: { schedule: "15 */12 * * *", container } } };
}

function port(target: string, version: number): Resource {
  const ports = [{ name: "http", port: 80 + (version % 2), targetPort: 8080 }];
  return { name: "front", spec: { $case: "service", value: { target, ports } } };
}

function route(hostname: string): Resource {
  return {
    name: "front-route",
    spec: { $case: "route", value: { targetService: "front", hostnames: [hostname] } },
  };
}

function aSecret(name: string, text: string): PutObjectRequest {
  const value = { data: { value: Buffer.from(text) } };
  return PutObjectRequest.fromPartial({
    object: { namespace: "shop", name, spec: { $case: "secret", value } },
    namespace: "shop",
  } as object);
}

const CONFIG = {
  ...readConfig(["--data-dir", "/nonexistent"], {}),
  // With fewer heartbeats the days pass faster.
  heartbeatIntervalSeconds: 60,
  autoscaling: { intervalSeconds: 300 },
  events: { maxCount: 100, maxMegabytes: 1 },
  rollout: { progressDeadlineSeconds: 120, placementDeadlineSeconds: 20, stableSeconds: 1 },
  workspaces: WORKSPACES_SCHEMA.parse({ enabled: true, snapshots: { perWorkspace: 10 } }),
};

/** Node.js provides it with --expose-gc only. */
function collectGarbage(): void {
  assert.ok(gc, "start it with --expose-gc");
  gc();
}

await main();
