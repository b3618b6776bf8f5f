import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HandshakeGate } from "./handshake-gate.ts";

function aGate(maxHandshakes: number, maxHandshakesPerAddress = maxHandshakes, maxWaiting = 100) {
  return new HandshakeGate<string>({
    maxHandshakes,
    maxHandshakesPerAddress,
    maxWaiting,
    maxWaitingPerAddress: maxWaiting,
  });
}

describe("HandshakeGate", () => {
  it("starts as many connections as there are places, first come first served", () => {
    const gate = aGate(2);
    for (const item of ["a", "b", "c", "d"]) gate.add(item, `10.0.0.${item}`);
    assert.deepEqual(gate.next(), ["a", "b"]);
    assert.deepEqual(gate.next(), []);
    gate.remove("a");
    assert.deepEqual(gate.next(), ["c"]);
    assert.equal(gate.running, 2);
    assert.equal(gate.waiting, 1);
  });

  it("keeps places free for other addresses", () => {
    const gate = aGate(4, 2);
    for (const item of ["x1", "x2", "x3", "x4"]) gate.add(item, "10.0.0.1");
    gate.add("y", "10.0.0.2");
    assert.deepEqual(gate.next(), ["x1", "y", "x2"]);
    gate.remove("x1");
    assert.deepEqual(gate.next(), ["x3"]);
  });

  it("alternates between addresses, however many connections one of them has waiting", () => {
    const gate = aGate(2);
    for (const item of ["x1", "x2", "x3", "x4"]) gate.add(item, "10.0.0.1");
    assert.deepEqual(gate.next(), ["x1", "x2"]);
    gate.add("y1", "10.0.0.2");
    gate.add("y2", "10.0.0.2");
    gate.remove("x1");
    assert.deepEqual(gate.next(), ["x3"]);
    gate.remove("x2");
    assert.deepEqual(gate.next(), ["y1"]);
    gate.remove("x3");
    gate.remove("y1");
    assert.deepEqual(gate.next(), ["x4", "y2"]);
    assert.equal(gate.waiting, 0);
  });

  it("gives an address a smaller share of the queue on request", () => {
    const gate = aGate(1);
    assert.deepEqual(
      ["a", "b", "c"].map((item) => gate.add(item, "10.0.0.1", 2)),
      [true, true, false],
    );
    assert.equal(gate.add("d", "10.0.0.1"), true);
  });

  it("keeps connections whose address may not start yet, and starts others", () => {
    const gate = aGate(4);
    gate.add("x", "10.0.0.1");
    gate.add("y", "10.0.0.2");
    assert.deepEqual(
      gate.next((address) => address !== "10.0.0.1"),
      ["y"],
    );
    assert.deepEqual(gate.next(), ["x"]);
  });

  it("counts an IPv6 /64 as one address", () => {
    const gate = aGate(4, 1);
    gate.add("a", "2001:db8:0:1::1");
    gate.add("b", "2001:db8:0:1:ffff::2");
    gate.add("c", "2001:db8:0:2::1");
    gate.add("d", "::ffff:10.0.0.1");
    gate.add("e", "::ffff:10.0.0.2");
    assert.deepEqual(gate.next(), ["a", "c", "d", "e"]);
  });

  it("rejects connections beyond the queue's length", () => {
    const gate = aGate(1, 1, 2);
    assert.deepEqual(
      ["a", "b", "c"].map((item) => gate.add(item, "10.0.0.1")),
      [true, true, false],
    );
  });

  it("keeps room in the queue for other addresses, and counts only waiting connections", () => {
    const limits = { maxHandshakes: 1, maxHandshakesPerAddress: 1, maxWaiting: 10, maxWaitingPerAddress: 2 };
    const gate = new HandshakeGate<string>(limits);
    const add = (item: string) => gate.add(item, item.startsWith("a") ? "10.0.0.1" : "10.0.0.2");
    assert.deepEqual(["a1", "a2", "a3", "b1"].map(add), [true, true, false, true]);
    assert.deepEqual(gate.next(), ["a1"]);
    assert.deepEqual(["a4", "a5"].map(add), [true, false]);
    gate.remove("a2");
    assert.deepEqual(["a6", "a7"].map(add), [true, false]);
  });

  it("forgets removed connections, queued or started, also if removed twice", () => {
    const gate = aGate(1);
    gate.add("a", "10.0.0.1");
    gate.add("b", "10.0.0.1");
    gate.add("c", "10.0.0.1");
    gate.next();
    gate.remove("b");
    gate.remove("a");
    gate.remove("a");
    assert.deepEqual(gate.next(), ["c"]);
    assert.equal(gate.running, 1);
    assert.equal(gate.waiting, 0);
  });
});
