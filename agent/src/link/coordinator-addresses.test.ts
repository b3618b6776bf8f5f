import assert from "node:assert/strict";
import { test } from "node:test";
import { CoordinatorAddresses } from "./coordinator-addresses.ts";

const [a, b, c] = [anAddress("a"), anAddress("b"), anAddress("c")];

test("hosts begin with random coordinators, and move on from one to the next", () => {
  const settings = { coordinator: a, coordinators: [b, c] };
  const begun = [0, 0.34, 0.99].map((drawn) => CoordinatorAddresses.of(settings, () => drawn));
  assert.deepEqual(
    begun.map(({ current }) => current.host),
    ["a", "b", "c"],
  );
  const [, , last] = begun;
  const options = last?.with({ nodeName: "n1" });
  assert.deepEqual([options?.nodeName, options?.address], ["n1", c]);
  last?.moveOn();
  assert.deepEqual([last?.current, options?.address], [a, a]);
});

test("a single coordinator is used again and again", () => {
  const addresses = CoordinatorAddresses.of({ coordinator: a, coordinators: [] }, () => 0.99);
  addresses.moveOn();
  assert.equal(addresses.current, a);
});

function anAddress(host: string) {
  return { host, port: 7600 };
}
