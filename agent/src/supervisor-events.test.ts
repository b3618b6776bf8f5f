import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEntry } from "@forage/common/log";
import type { Step } from "./pods/step.ts";
import type { SupervisorEvents } from "./pods/supervisor-options.ts";
import { type SupervisorListeners, supervisorEvents } from "./supervisor-events.ts";

interface Recorded {
  readonly events: SupervisorEvents;
  /** The calls of the listeners and the events of the log, in order. */
  readonly calls: unknown[][];
  readonly logged: string[];
}

function record(): Recorded {
  const calls: unknown[][] = [];
  const logged: string[] = [];
  const note =
    (name: string) =>
    (...args: unknown[]): void =>
      void calls.push([name, ...args]);
  const log =
    (level: string) =>
    ({ event }: LogEntry): void =>
      void logged.push(`${level} ${event}`);
  const names = ["save", "saveOutcome", "saveRemoved", "forget"];
  const listeners = {
    ...{ saver: Object.fromEntries(names.map((name) => [name, note(name)])), stepped: note("stepped") },
    ...{ outbox: { put: note("put"), drop: note("drop") }, changed: note("changed") },
    ...{
      reporter: { impaired: note("impaired"), checkClaims: note("check-claims") },
      noteDamage: note("damage"),
    },
    ...{ log: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") } },
    stateFile: (podUid: string) => `/states/${podUid}`,
  } as unknown as SupervisorListeners;
  return { events: supervisorEvents(listeners), calls, logged };
}

test("reports a failing part of the host each time, but logs it once until it works or fails differently", () => {
  const { events, calls, logged } = record();
  const errors = ["no disk", "no disk", "no memory", undefined, undefined, "no memory"];
  for (const text of errors) events.impaired("volumes", text === undefined ? undefined : new Error(text));
  assert.deepEqual(
    calls,
    errors.map((text) => ["impaired", "volumes", text]),
  );
  const [impaired, works] = ["warn host-part-impaired", "info host-part-works-again"];
  assert.deepEqual(logged, [impaired, impaired, works, impaired]);
});

test("sends a changed status before it announces the change, and drops that of a forgotten pod", () => {
  const { events, calls, logged } = record();
  const status = { uid: "u" } as Parameters<SupervisorEvents["changed"]>[0];
  events.changed(status);
  events.forgotten("u");
  assert.deepEqual(calls, [
    ["put", status],
    ["changed", "u"],
    ["drop", "u"],
    ["changed", "u"],
    ["forget", "u"],
  ]);
  assert.deepEqual(logged, ["info pod-forgotten"]);
});

test("checks claims after steps that create and release them", () => {
  const claimsAfter = (step: Step): boolean => {
    const { events, calls } = record();
    events.stepped("u", step, 5.4, undefined);
    assert.deepEqual(calls[0], ["stepped", step, 5.4, false]);
    return calls.some(([name]) => name === "check-claims");
  };
  assert.equal(claimsAfter({ type: "startContainer", container: "a", attempt: 0 }), true);
  assert.equal(claimsAfter({ type: "cleanUp" }), true);
  assert.equal(claimsAfter({ type: "attachSandbox" }), false);
});

test("logs a step by its kind: failures as warnings, changes of the host as info, the rest as debug", () => {
  const { events, calls, logged } = record();
  events.stepped("u", { type: "cleanUp" }, 1, new Error("busy"));
  events.stepped("u", { type: "removeContainers", ids: ["a"] }, 1, undefined);
  events.stepped("u", { type: "inspect" }, 1, undefined);
  assert.deepEqual(calls[0], ["stepped", { type: "cleanUp" }, 1, true]);
  assert.deepEqual(logged, ["warn step-failed", "info step-done", "debug step-done"]);
});

test("reports a pod that was restored from the host as damage of its state", () => {
  const { events, calls } = record();
  events.recovered("u");
  assert.deepEqual(calls[0]?.slice(0, 2), ["damage", "/states/u"]);
});
