import assert from "node:assert/strict";
import { test } from "node:test";
import { type SubscribeResponse, WorkspacePhase } from "@forage/proto/core";
import { until } from "./support/until.ts";
import { aStart, startWorkspaceWorld } from "./support/workspaces/workspace-world.ts";

const LIMIT = { timeout: 120_000 };
const WORKSPACES = 40;
const READERS = 15;
/** Annotations in each status, so that the buffers of a connection hold only a few statuses. */
const ANNOTATIONS = { first: "x".repeat(4_000), second: "x".repeat(4_000) };
const ALL = { mustMatch: undefined };
const SUBSCRIBERS = 1_000;
const SUBSCRIBERS_PER_CONNECTION = 50;

/** Counts the messages that one subscriber has received. */
class Received {
  messages = 0;
  readonly #versions = new Map<string, bigint>();
  readonly #stopped = new Map<string, number>();
  #error: Error | undefined;

  /** Cancelling the stream at the end of the test is an error as well. */
  fail(error: Error): void {
    this.#error = error;
  }

  add({ status }: SubscribeResponse): void {
    const { id = "", statusVersion = 0n, phase } = status ?? {};
    this.messages += 1;
    assert.ok(statusVersion > (this.#versions.get(id) ?? 0n), `the versions of ${id} grow`);
    this.#versions.set(id, statusVersion);
    if (phase === WorkspacePhase.STOPPED) this.#stopped.set(id, (this.#stopped.get(id) ?? 0) + 1);
  }

  /** The number of stopped workspaces, each of which was reported once. */
  get stopped(): number {
    if (this.#error !== undefined) throw this.#error;
    for (const [id, times] of this.#stopped) assert.equal(times, 1, `STOPPED of ${id} came once`);
    return this.#stopped.size;
  }
}

test(
  "sends concurrent starts and stops to every subscriber, despite a client that never reads",
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
    // The client has its own connection, like another process.
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

    // The newest status of each workspace replaced those for which the transport had no space.
    stream.resume();
    await until("the late reader knows it, too", () => neverReads.stopped === WORKSPACES, 30_000);
    const most = Math.max(...readers.map(({ messages }) => messages));
    assert.ok(neverReads.messages < most, `${neverReads.messages} messages of ${most}`);
  },
);

test("reports each stopped workspace once to a thousand subscribers", LIMIT, async (t) => {
  const { calls, world } = await startWorkspaceWorld(t);
  const connections = Array.from({ length: SUBSCRIBERS / SUBSCRIBERS_PER_CONNECTION }, () =>
    world.workspaces(),
  );
  const all = connections.flatMap((client) =>
    Array.from({ length: SUBSCRIBERS_PER_CONNECTION }, () => {
      const received = new Received();
      const stream = client.subscribe(ALL);
      stream.on("error", (error: Error) => received.fail(error));
      stream.on("data", (response: SubscribeResponse) => received.add(response));
      t.after(() => stream.cancel());
      return received;
    }),
  );
  const ids = ["first", "second"];
  for (const id of ids) {
    await calls.startWorkspace(aStart({ id, servicePrefix: id, metadata: { metaId: id } }));
    await calls.stopWorkspace({ id, policy: 0 });
  }
  await until("all subscribers know", () => all.every(({ stopped }) => stopped === ids.length), 60_000);
});
