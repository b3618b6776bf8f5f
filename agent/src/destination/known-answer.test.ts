import assert from "node:assert/strict";
import { test } from "node:test";
import { Update } from "@forage/proto/destination";
import { ENDPOINTS } from "./known-answer.ts";

const address = (port: number) => ({ ip: { ip: { $case: "ipv4" as const, value: 0x0a000001 } }, port });

function add(ports: readonly number[], pod = "a"): Buffer {
  const addrs = ports.map((port) => ({ addr: address(port), weight: 10_000, metricLabels: { pod } }));
  return encoded({ update: { $case: "add", value: { addrs, metricLabels: { service: "web" } } } });
}

function remove(ports: readonly number[]): Buffer {
  return encoded({ update: { $case: "remove", value: { addrs: ports.map(address) } } });
}

function none(exists: boolean): Buffer {
  return encoded({ update: { $case: "noEndpoints", value: { exists } } });
}

function encoded(update: Parameters<typeof Update.fromPartial>[0]): Buffer {
  return Buffer.from(Update.encode(Update.fromPartial(update)).finish());
}

/** Returns the kind and ports of each update. */
function shown(messages: readonly Buffer[]): string[] {
  return messages.map((bytes) => {
    const { update } = Update.decode(bytes);
    if (update?.$case === "add")
      return `add ${update.value.addrs.map(({ addr }) => addr?.port).join()} ${update.value.metricLabels.service}`;
    if (update?.$case === "remove") return `remove ${update.value.addrs.map(({ port }) => port).join()}`;
    return `none ${update?.value.exists}`;
  });
}

test("a new reader gets the whole state in one message", () => {
  const state = ENDPOINTS.next(ENDPOINTS.next(undefined, add([1, 2]), true), add([3]), false);
  assert.deepEqual(shown(ENDPOINTS.between(undefined, state)), ["add 1,2,3 web"]);
});

test("a reader with an older state gets removals, then new or changed endpoints", () => {
  const old = ENDPOINTS.next(undefined, add([1, 2, 3]), true);
  const newer = ENDPOINTS.next(ENDPOINTS.next(old, remove([1]), false), add([3, 4], "b"), false);
  assert.deepEqual(shown(ENDPOINTS.between(old, newer)), ["remove 1", "add 3,4 web"]);
  assert.deepEqual(ENDPOINTS.between(newer, newer), []);
});

test("the first message of a new stream replaces the known state", () => {
  const old = ENDPOINTS.next(undefined, add([1, 2]), true);
  const again = ENDPOINTS.next(old, add([2, 3]), true);
  assert.deepEqual(shown(ENDPOINTS.between(old, again)), ["remove 1", "add 3 web"]);
  assert.deepEqual(ENDPOINTS.between(old, ENDPOINTS.next(old, add([1, 2]), true)), []);
});

test("a destination whose first message is a removal exists without endpoints", () => {
  assert.deepEqual(shown(ENDPOINTS.between(undefined, ENDPOINTS.next(undefined, remove([1]), true))), [
    "none true",
  ]);
});

test("an answer without endpoints reports whether the destination exists", () => {
  const old = ENDPOINTS.next(undefined, add([1]), true);
  const empty = ENDPOINTS.next(old, remove([1]), false);
  assert.deepEqual(shown(ENDPOINTS.between(old, empty)), ["none true"]);
  const unknown = ENDPOINTS.next(empty, none(false), false);
  assert.deepEqual(shown(ENDPOINTS.between(empty, unknown)), ["none false"]);
  assert.deepEqual(shown(ENDPOINTS.between(undefined, unknown)), ["none false"]);
  assert.deepEqual(shown(ENDPOINTS.between(unknown, ENDPOINTS.next(unknown, add([5]), false))), [
    "add 5 web",
  ]);
});
