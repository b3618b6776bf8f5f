import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { assignUnits, type DeviceAssignment } from "./assign-units.ts";
import { DeviceError, type DeviceUnit } from "./devices.ts";

const GPU = "example.com/gpu";

test("assigns free units in the order of declaration", () => {
  assert.deepEqual(unitsOf(assign({ count: 2 })), ["0", "1"]);
});

test("assigns no unit that another container has, and no missing unit", () => {
  const others = [held("0", { container: "x" })];
  assert.deepEqual(unitsOf(assign({ count: 2, others })), ["1", "2"]);
  assert.deepEqual(unitsOf(assign({ count: 2, others, absent: ["1"] })), ["2", "3"]);
});

test("a container gets its former units again", () => {
  assert.deepEqual(unitsOf(assign({ count: 1, own: [held("3", { container: "main" })] })), ["3"]);
});

test("replaces a container's unit that is missing now", () => {
  const own = [held("0", { container: "main" })];
  assert.deepEqual(unitsOf(assign({ count: 1, own, absent: ["0"] })), ["1"]);
});

test("containers reuse the units of init containers, but not each other's", () => {
  const own = [held("2", { container: "setup", init: true }), held("3", { container: "side" })];
  assert.deepEqual(unitsOf(assign({ count: 2, own })), ["2", "0"]);
  assert.deepEqual(unitsOf(assign({ count: 2, own, init: true })), ["2", "3"]);
});

test("fails with the numbers of units that other containers hold and that the host lacks", () => {
  const others = [held("0", { container: "x" })];
  assert.throws(
    () => assign({ count: 3, others, absent: ["1"] }),
    (error: Error) =>
      error instanceof DeviceError &&
      error.message ===
        `3 ${GPU} are needed and 2 are free: of 4, 1 are held by other containers and 1 are missing on the host`,
  );
});

test("an undeclared device does not exist", () => {
  for (const name of ["example.com/fpga", "toString"]) {
    const request = { container: "main", init: false, desired: { [name]: 1 } };
    assert.throws(
      () => assignUnits({ [GPU]: [] }, () => true, request, { own: [], others: [] }),
      /this host has no/,
    );
  }
});

test("no unit is ever assigned to two pods, whatever the sequence of changes", () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const random = randomOf(seed).next;
    const pods = new Map<string, readonly DeviceAssignment[]>();
    for (let step = 0; step < 200; step += 1) {
      const uid = `pod-${Math.floor(random() * 5)}`;
      if (random() < 0.3) {
        pods.delete(uid);
        continue;
      }
      const own = pods.get(uid) ?? [];
      const others = [...pods].filter(([it]) => it !== uid).flatMap(([, it]) => it);
      const container = random() < 0.5 ? "main" : "side";
      const count = 1 + Math.floor(random() * 3);
      try {
        const given = assign({ count, own, others, container });
        assert.equal(new Set(unitsOf(given)).size, count);
        pods.set(uid, [...own.filter((it) => it.container !== container), ...given]);
      } catch (error) {
        assert.ok(error instanceof DeviceError, `seed ${seed}: ${error}`);
      }
      const all = [...pods.values()].flat().map((it) => it.unit);
      assert.equal(new Set(all).size, all.length, `seed ${seed}, step ${step}`);
    }
  }
});

interface Asked {
  readonly count: number;
  readonly container?: string;
  readonly init?: boolean;
  readonly own?: readonly DeviceAssignment[];
  readonly others?: readonly DeviceAssignment[];
  readonly absent?: readonly string[];
}

function assign({ count, container = "main", init = false, own = [], others = [], absent = [] }: Asked) {
  const pool = { [GPU]: ["0", "1", "2", "3"].map((id): DeviceUnit => ({ id, devices: [] })) };
  const request = { container, init, desired: { [GPU]: count } };
  return assignUnits(pool, (unit) => !absent.includes(unit.id), request, { own, others });
}

function held(unit: string, of: { readonly container: string; readonly init?: boolean }): DeviceAssignment {
  return { init: false, ...of, resource: GPU, unit };
}

function unitsOf(holdings: readonly DeviceAssignment[]): readonly string[] {
  return holdings.map((it) => it.unit);
}
