import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionRequest } from "@forage/proto/forage/agent/v1/agent";
import { PushImageRequest } from "@forage/proto/forage/operator/v1/operator";
import { imageHandlers, pushShares } from "./images.ts";

test("ignores indexes and the mark of a sending node in requests of clients", async () => {
  const opened: (SessionRequest["kind"] | undefined)[] = [];
  const refusal = new Error("the test is over");
  const broker = {
    open: (_: string, { kind }: Pick<SessionRequest, "kind">) => {
      opened.push(kind);
      throw refusal;
    },
  };
  const { pushImage } = imageHandlers({ state: { node: () => ({}) }, broker, vault: {} } as never);
  const image = { image: "web:1", namespace: "shop", manifest: Buffer.from("m"), config: Buffer.from("c") };
  const options = { ...image, indexes: [Buffer.from("i")], fromNode: true };
  const request = PushImageRequest.fromPartial({ frame: { $case: "start", value: { node: "n1", options } } });
  const context = {
    method: "/forage.operator.v1.OperatorService/PushImage",
    caller: { type: "user", name: "token:a", grants: [{ role: "editor", namespaces: ["shop"] }] },
    signal: new AbortController().signal,
  };
  const requests = (async function* () {
    yield request;
  })();
  const answers = pushImage(requests, context as never)[Symbol.asyncIterator]();
  await assert.rejects(answers.next(), refusal);
  const [kind] = opened;
  assert.ok(kind?.$case === "imagePush");
  assert.deepEqual([kind.value.indexes, kind.value.fromNode], [[], false]);
  assert.equal(kind.value.image, "web:1");
});

test("limits concurrent pushes of one caller, without affecting others", () => {
  const slots = pushShares();
  const ends = Array.from({ length: 8 }, () => slots.acquire("a"));
  assert.throws(() => slots.acquire("a"), { code: "RESOURCE_EXHAUSTED", message: /8 of this token/ });
  slots.acquire("b")();
  ends[0]?.();
  ends[0]?.();
  slots.acquire("a");
  assert.throws(() => slots.acquire("a"), { code: "RESOURCE_EXHAUSTED" });
});

test("limits concurrent pushes of all callers", () => {
  const slots = pushShares();
  const ends = Array.from({ length: 32 }, (_, index) => slots.acquire(`caller ${index}`));
  assert.throws(() => slots.acquire("another"), {
    code: "RESOURCE_EXHAUSTED",
    message: /32, which is the limit/,
  });
  for (const end of ends) end();
  slots.acquire("another");
});
