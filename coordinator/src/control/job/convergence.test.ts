import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Random, randomOf } from "@forage/common/random";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { PodStatusRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aJobEntry, aNode } from "../../../test/support/entries.ts";
import { settled } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { encodeRecord } from "../../model/codec.ts";
import { statusKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { PodEntry } from "../../state/entries.ts";
import { type Store, StoreError } from "../../store/index.ts";
import { forgetPod, rewritePod, stopPod } from "../pod-writes.ts";
import { parseIndexes } from "./indexes.ts";
import { jobStatusOf } from "./job-input.ts";
import { JobReconciler } from "./reconciler.ts";

const SEEDS = 60;
const ROUNDS = 60;
const KEY = "shop/job/migrate";
const NODES = ["n1", "n2", "n3"];

test("a job counts exactly its completions under random pod failures", {
  timeout: 120_000,
}, async (t) => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const fleet = await Fleet.start(t, randomOf(seed));
    for (let round = 0; round < ROUNDS; round++) {
      await fleet.change();
      await fleet.evaluate();
      fleet.check(`seed ${seed} round ${round}`);
    }
    for (let round = 0; round < 400 && fleet.status?.condition === ""; round++) {
      await fleet.calm();
      await fleet.evaluate();
      fleet.check(`seed ${seed} calm round ${round}`);
    }
    assert.equal(fleet.status?.condition, "Complete", `seed ${seed}: ${fleet.describe()}`);
    assert.equal(fleet.status?.succeeded, fleet.completions, `seed ${seed}`);
  }
});

/** Simulates the pods of one job on nodes that are lost and return, and a coordinator that is interrupted. */
class Fleet {
  readonly completions: number;
  readonly #parallelism: number;
  readonly #indexed: boolean;
  readonly #random: Random;
  readonly #view: Awaited<ReturnType<typeof aView>>;
  readonly #jobs: JobReconciler;
  readonly #lost = new Set<string>();
  #failing = 0;

  static async start(t: TestContext, random: Random): Promise<Fleet> {
    const completions = 1 + random.below(6);
    const parallelism = 1 + random.below(4);
    const completionMode = random.chance(0.5) ? "Indexed" : "NonIndexed";
    const jobConfig = { completions, parallelism, completionMode, backoffLimit: 1_000_000 };
    const view = await aView(t, {
      resources: [aJobEntry({ spec: { jobConfig } })],
      nodes: NODES.map((name) => aNode({ name })),
    });
    return new Fleet(random, view, { completions, parallelism, indexed: completionMode === "Indexed" });
  }

  private constructor(
    random: Random,
    view: Awaited<ReturnType<typeof aView>>,
    job: { readonly completions: number; readonly parallelism: number; readonly indexed: boolean },
  ) {
    this.completions = job.completions;
    this.#parallelism = job.parallelism;
    this.#indexed = job.indexed;
    this.#random = random;
    this.#view = view;
    this.#jobs = new JobReconciler({
      ...view,
      store: this.#interrupted(view.store),
      log: pino({ level: "silent" }),
      steps: { report: () => {} },
      events: { record: () => {} },
      randomName: (length) => `${random.next()}`.slice(2, 2 + length).padEnd(length, "0"),
      held: () => false,
    });
  }

  get status() {
    return jobStatusOf(this.#view.state, "shop", "migrate");
  }

  get #pods(): PodEntry[] {
    return this.#view.state.podsOfWorkload(KEY);
  }

  /** Makes one random change. */
  async change(): Promise<void> {
    const { state, clock } = this.#view;
    const [pod] = this.#random.shuffled(this.#pods);
    const node = this.#random.pick(NODES);
    switch (this.#random.below(9)) {
      case 0:
        // The first node never fails.
        if (node === "n1") return;
        this.#lost.add(node);
        state.setNodeHealth(node, { ready: this.#random.chance(0.5), message: "", lastSeenMs: 1 }, true);
        return;
      case 1:
        clock.advance(this.#random.below(400_000));
        return;
      case 2:
        this.#failing = this.#random.below(3);
        return;
      case 3:
        if (pod !== undefined && pod.record.stoppingSince === undefined)
          await this.#write(stopPod(pod, "something else needs the room", clock.nowMs()));
        return;
      default:
        if (pod !== undefined) await this.#advance(pod, node);
    }
  }

  /** Makes all nodes reachable and lets pods succeed. */
  async calm(): Promise<void> {
    const { state, clock } = this.#view;
    this.#failing = 0;
    for (const name of NODES) state.setNodeHealth(name, { ready: true, message: "", lastSeenMs: 1 }, true);
    clock.advance(400_000);
    for (const pod of this.#pods) {
      if (pod.record.stoppingSince !== undefined && pod.record.node !== "") await this.#write(forgetPod(pod));
      else if (pod.record.node === "") await this.#bind(pod, "n1");
      else if (pod.record.job?.counted === "") await this.#report(pod, PodPhase.SUCCEEDED);
    }
  }

  describe(): string {
    const pods = this.#pods.map(
      ({ record, status }) => `${record.name} ${record.node} ${status?.phase} ${record.job?.counted}`,
    );
    return [this.status?.succeeded, this.status?.condition, this.status?.reason, ...pods].join("; ");
  }

  async evaluate(): Promise<void> {
    await this.#jobs.reconcile(KEY).catch((error: unknown) => {
      if (!(error instanceof StoreError)) throw error;
    });
    await settled();
  }

  check(where: string): void {
    const { status } = this;
    const pods = this.#pods;
    if (status === undefined) return;
    assert.ok(status.succeeded <= this.completions, `${where}: ${status.succeeded} of ${this.completions}`);
    if (this.#indexed) assert.equal(parseIndexes(status.completedIndexes).size, status.succeeded, where);
    const reported = pods.filter(
      ({ record }) =>
        record.job?.counted === "" &&
        (record.node === "" || this.#view.state.node(record.node)?.health.ready),
    );
    const stays = reported.filter(({ record }) => record.stoppingSince === undefined);
    if (status.condition === "")
      assert.ok(stays.length <= this.#parallelism, `${where}: ${stays.length} run at a time`);
    // A lost node that returns may have a pod whose index was given to another pod.
    const indexes = reported
      .filter(({ record }) => !this.#lost.has(record.node))
      .map(({ record }) => record.job?.index);
    if (this.#indexed) assert.equal(new Set(indexes).size, indexes.length, `${where}: an index runs twice`);
  }

  async #advance(pod: PodEntry, node: string): Promise<void> {
    if (pod.record.node === "") return this.#bind(pod, node);
    const stopping = pod.record.stoppingSince !== undefined;
    // An ended pod keeps its status.
    const phase = pod.status?.phase;
    const over = phase === PodPhase.SUCCEEDED || phase === PodPhase.FAILED;
    if (stopping && this.#random.chance(0.5)) return this.#write(forgetPod(pod));
    if (over) return;
    const next = this.#random.pick([
      PodPhase.RUNNING,
      PodPhase.SUCCEEDED,
      PodPhase.SUCCEEDED,
      PodPhase.FAILED,
    ]);
    return this.#report(pod, next);
  }

  #bind(pod: PodEntry, node: string): Promise<void> {
    if (pod.record.stoppingSince !== undefined) return Promise.resolve();
    return this.#write(rewritePod(pod, { ...pod.record, node }));
  }

  async #report(pod: PodEntry, phase: PodPhase): Promise<void> {
    const { record } = pod;
    const status = PodStatus.fromPartial({ uid: record.uid, phase });
    const observedAt = toTimestamp(this.#view.clock.nowMs());
    const value = encodeRecord(
      PodStatusRecord,
      PodStatusRecord.fromPartial({ node: record.node, status, observedAt }),
    );
    await this.#write({
      compares: [{ type: "exists", key: pod.key }],
      ops: [{ type: "put", key: statusKey(record.namespace, record.name), value }],
    });
  }

  async #write({ compares, ops }: ReturnType<typeof forgetPod>): Promise<void> {
    const { revision } = await this.#view.store.txn(compares, ops);
    await this.#view.state.reached(revision);
  }

  /**
   * Returns a store whose writes may fail before or after they took effect, so that the next evaluation can't know which.
   */
  #interrupted(store: Store): Store {
    return Object.create(store, {
      txn: {
        value: async (...args: Parameters<Store["txn"]>) => {
          const failing = this.#failing-- > 0;
          if (failing && this.#random.chance(0.5)) throw new StoreError("OVERLOADED", "too many wait");
          const result = await store.txn(...args);
          await this.#view.state.reached(result.revision);
          if (failing) throw new StoreError("OVERLOADED", "the answer was lost");
          return result;
        },
      },
    });
  }
}
