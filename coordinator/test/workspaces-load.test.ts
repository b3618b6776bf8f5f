import assert from "node:assert/strict";
import { test } from "node:test";
import { type SubscribeResponse, WorkspacePhase } from "@forage/proto/core";
import { until } from "./support/until.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";

const LIMIT = { timeout: 120_000 };
const WORKSPACES = 40;
const READERS = 15;
/** In each status, so that the buffers of a connection hold but a few of them. */
const ANNOTATIONS = { first: "x".repeat(4_000), second: "x".repeat(4_000) };
const ALL = { mustMatch: undefined };

/** Counts the messages that one subscriber has received. */
class Received {
  messages = 0;
  readonly #versions = new Map<string, bigint>();
  readonly #stopped = new Map<string, number>();

  add({ status }: SubscribeResponse): void {
    const { id = "", statusVersion = 0n, phase } = status ?? {};
    this.messages += 1;
    assert.ok(statusVersion > (this.#versions.get(id) ?? 0n), `the versions of ${id} grow`);
    this.#versions.set(id, statusVersion);
    if (phase === WorkspacePhase.STOPPED) this.#stopped.set(id, (this.#stopped.get(id) ?? 0) + 1);
  }

  /** The number of workspaces that have stopped; each was reported once. */
  get stopped(): number {
    for (const [id, times] of this.#stopped) assert.equal(times, 1, `STOPPED of ${id} came once`);
    return this.#stopped.size;
  }
}

test(
  "workspaces that start and stop at once reach every subscriber, whatever a client that never reads does",
  LIMIT,
  async (t) => {
    const { calls, world } = await startWorkspaceWorld(t, {
      settings: { classes: [{ id: "tiny", cpu: "1m", memory: "1Mi" }] },
    });
    const subscribe = (client: typeof calls) => {
      const received = new Received();
      const stream = client.subscribe(ALL);
      stream.on("error", () => {});
      stream.on("data", (response: SubscribeResponse) => received.add(response));
      t.after(() => stream.cancel());
      return { stream, received };
    };
    // On a connection of its own, as another client has.
    const { stream, received: neverReads } = subscribe(world.workspaces());
    stream.pause();
    const readers = Array.from({ length: READERS }, () => subscribe(calls).received);
    const ids = Array.from({ length: WORKSPACES }, (_, index) => `w${index}`);

    await Promise.all(
      ids.map((id) => {
        const metadata = { metaId: id, annotations: ANNOTATIONS };
        return calls.startWorkspace(aStart({ id, servicePrefix: id, metadata }));
      }),
    );
    const inPhase = async (phase: WorkspacePhase): Promise<number> =>
      (await calls.getWorkspaces(ALL)).status.filter((status) => status.phase === phase).length;
    await until("all run", async () => (await inPhase(WorkspacePhase.RUNNING)) === WORKSPACES, 60_000);
    await Promise.all(ids.map((id) => calls.stopWorkspace({ id, policy: 0 })));
    await until(
      "every reader knows that all have stopped",
      () => readers.every(({ stopped }) => stopped === WORKSPACES),
      60_000,
    );
    assert.equal(neverReads.messages, 0);

    // The newest status of each workspace replaced those for which the transport had no room.
    stream.resume();
    await until("the late reader knows it, too", () => neverReads.stopped === WORKSPACES, 30_000);
    const most = Math.max(...readers.map(({ messages }) => messages));
    assert.ok(neverReads.messages < most, `${neverReads.messages} messages of ${most}`);
  },
);
