import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, encode, type OptAnswer } from "dns-packet";
import { failureOf, type Query, readQuery, truncated } from "./message.ts";

const QUESTION = { type: "A", name: "web.shop.svc.cluster.local", class: "IN" } as const;

/** Returns a client's OPT record, which offers datagrams of the size. */
function offer(udpPayloadSize: number): OptAnswer {
  const rest = { extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] };
  return { type: "OPT", name: ".", udpPayloadSize, ...rest };
}

function queryWith(...additionals: readonly OptAnswer[]): Query {
  const read = readQuery(
    encode({ type: "query", id: 7, questions: [QUESTION], additionals: [...additionals] }),
  );
  assert.ok(read.type === "query");
  return read.query;
}

function sizesIn(answer: Buffer): number[] {
  return (decode(answer).additionals ?? []).flatMap((it) => (it.type === "OPT" ? [it.udpPayloadSize] : []));
}

test("reads the size of the datagrams that a client accepts, between the least and the largest", () => {
  const sizes = [queryWith(), queryWith(offer(100)), queryWith(offer(900)), queryWith(offer(4096))];
  assert.deepEqual(
    sizes.map(({ datagramBytes }) => datagramBytes),
    [512, 512, 900, 1_232],
  );
});

test("answers with an OPT record only clients that have sent one", () => {
  assert.deepEqual(sizesIn(failureOf(queryWith())), []);
  assert.deepEqual(sizesIn(failureOf(queryWith(offer(900)))), [1_232]);
});

test("truncates answers that exceed the client's datagrams", () => {
  const answers = [Buffer.alloc(512, 1), Buffer.alloc(513, 1)];
  const fits = (query: Query) => answers.map((answer) => truncated(query, answer) === answer);
  assert.deepEqual(fits(queryWith()), [true, false]);
  assert.deepEqual(fits(queryWith(offer(900))), [true, true]);
  const [, long = Buffer.alloc(0)] = answers;
  assert.equal(decode(truncated(queryWith(), long)).flag_tc, true);
});
