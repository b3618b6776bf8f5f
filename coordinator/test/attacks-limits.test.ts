import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { VirtualClock } from "@forage/common/virtual-clock";
import { LogOptions, type SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { ObjectVersionRecord } from "@forage/proto/forage/store/v1/store";
import { preparePut } from "../src/api/objects/put.ts";
import { pushShares } from "../src/api/operator/images.ts";
import { MAX_STREAMS, MAX_STREAMS_OF_CALLER, Streams } from "../src/dashboard/streams.ts";
import { CoordinatorError } from "../src/errors.ts";
import { SessionBroker } from "../src/link/session-broker.ts";
import { encodeRecord } from "../src/model/codec.ts";
import { objectVersionKey } from "../src/model/keys.ts";
import { Planner, type PlannerOptions } from "../src/plan/planner.ts";
import { aView } from "./support/view.ts";

/**
 * A limit of which one caller uses every slot that it can get, while others must still get theirs.
 */

interface Limit {
  readonly ofCaller: number;
  readonly total: number;
  /** Acquires a slot for the caller and keeps it. Throws RESOURCE_EXHAUSTED. */
  readonly acquire: (caller: string) => Promise<void> | void;
}

const limits: Readonly<Record<string, () => Limit>> = {
  "pushes of images": () => {
    const shares = pushShares();
    return { ofCaller: 8, total: 32, acquire: (caller) => void shares.acquire(caller) };
  },
  "plans and trials that wait": () => {
    const planner = new Planner({ nowMs: () => 0 } as PlannerOptions);
    const endless = new Promise<never>(() => {});
    return {
      ofCaller: 4,
      total: 16,
      acquire: (caller) => Promise.race([planner.inTurn(caller, () => endless), setImmediate()]),
    };
  },
  "streams of dashboards": () => {
    const tokens = { watch: () => () => {} };
    const streams = new Streams({ tokens, stopping: new AbortController().signal });
    return {
      ofCaller: MAX_STREAMS_OF_CALLER,
      total: MAX_STREAMS,
      // Each slot is used by another browser that is logged in with the caller's token.
      acquire: (name) => {
        const { signal } = new AbortController();
        const caller = { type: "user", name, grants: [] } as const;
        streams.begin({ caller, session: { tokenId: name, key: name, signal } }, signal);
      },
    };
  },
  "log and exec sessions that wait for one node": () => {
    const { open } = sessionBroker();
    return { ofCaller: 32, total: 64, acquire: (caller) => open("n1", caller) };
  },
  "log and exec sessions over all nodes": () => {
    const { open } = sessionBroker();
    let node = 0;
    return { ofCaller: 500, total: 1_000, acquire: (caller) => open(`n${node++}`, caller) };
  },
};

for (const [name, make] of Object.entries(limits))
  test(`leaves slots for others: ${name}`, async () => {
    const { ofCaller, total, acquire } = make();
    const exhausted = { code: "RESOURCE_EXHAUSTED", message: /of this token/ };
    const rejected = (caller: string) => assert.rejects(async () => acquire(caller), exhausted);
    for (let count = 0; count < ofCaller; count++) await acquire("attacker");
    await rejected("attacker");
    for (let count = ofCaller; count < total; count++) await acquire(`caller ${count}`);
    await assert.rejects(async () => acquire("one too many"), { code: "RESOURCE_EXHAUSTED" });
  });

test("leaves other namespaces space for contents of secrets and config maps", async (t) => {
  const view = await aView(t);
  const versions = 66;
  const name = { namespace: "shop", kind: "config_map", name: "big" } as const;
  for (let version = 0; version < versions; version++) {
    const record = ObjectVersionRecord.fromPartial({
      content: { $case: "plain", value: Buffer.alloc(1024 * 1024) },
    });
    const value = encodeRecord(ObjectVersionRecord, record);
    const { revision } = await view.store.txn(
      [],
      [{ type: "put", key: objectVersionKey(name, `v${version}`), value }],
    );
    await view.state.reached(revision);
  }
  const content = { key: Buffer.from("value") };
  const options = { ...view, vault: { versionOf: () => "new" } } as never;
  const put = (namespace: string) =>
    preparePut({ name: { ...name, namespace, name: "small" }, labels: {}, content }, options);
  assert.throws(() => put("shop"), {
    code: "RESOURCE_EXHAUSTED",
    message: /of namespace "shop" hold .* at most 67108864 are kept/,
  });
  assert.equal(put("other").action, "created");
  const gone = Array.from({ length: versions }, (_, version) => {
    return { type: "delete", key: objectVersionKey(name, `v${version}`) } as const;
  });
  const { revision } = await view.store.txn([], gone);
  await view.state.reached(revision);
  assert.equal(put("shop").action, "created", "removed versions give their room back");
});

/**
 * Returns a broker whose nodes refuse the 65th waiting request, like sessions, and never open one.
 */
function sessionBroker() {
  const kind = { $case: "logs", value: LogOptions.fromPartial({ follow: true }) } as const;
  let names = 0;
  const waiting = new Map<string, SessionRequest[]>();
  const broker = new SessionBroker({
    clock: new VirtualClock(),
    randomName: () => `s${names++}`,
    sessions: {
      request: (node, request) => {
        const own = waiting.get(node) ?? [];
        if (own.length >= 64) throw exhausted();
        waiting.set(node, [...own, request]);
      },
    },
  });
  const { signal } = new AbortController();
  return {
    open: (node: string, caller: string): void =>
      void broker.open(node, { podUid: "p", container: "", kind }, signal, caller),
  };
}

function exhausted(): CoordinatorError {
  return new CoordinatorError("RESOURCE_EXHAUSTED", "too many wait for the node");
}
