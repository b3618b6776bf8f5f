import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import {
  findCamelCaseConstants,
  findCamelCaseTypes,
  findKeptAbortListeners,
  findKeptPromises,
  findKindDiscriminants,
  findUnlinkedSignals,
  findUnnamedErrors,
  findWallClockSums,
  type Offence,
  readAllSources,
  readProgramSources,
} from "./source-rules.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const SOURCES = readProgramSources(ROOT);

/** Files that may add a listener for an abort without removing it, with the reason. */
const LASTING_ABORT_LISTENERS: Readonly<Record<string, string>> = {
  "agent/src/runtime/fake-exec.ts": "a fake for tests, whose signal ends with the test",
  "cli/src/commands/confirm.ts": "asked once in a command's life",
  "cli/src/commands/port-forward.ts": "added once in a command's life",
  "coordinator/src/follower/forward.ts":
    "one listener for each service, for as long as the coordinator follows",
  "coordinator/src/link/history-guard.ts": "added once in the coordinator's life",
  "coordinator/src/link/session-broker.ts": "the signal is the client's call's own",
  "coordinator/src/rpc/open-calls.ts": "one listener for each method of the server, for its whole life",
  "coordinator/src/rpc/serve.ts": "one listener for each method of the server, for its whole life",
};

/** Files that may use `AbortSignal.any`, with the reason. */
const UNLINKED_SIGNALS: Readonly<Record<string, string>> = {
  "agent/src/agent.ts": "once in the agent's life",
  "agent/src/workspaces/content-client.ts": "both signals end with the transfer",
  "cli/src/commands/port-forward.ts": "once in a command's life",
  "cli/src/time-limit.ts": "once in a command's life",
  "coordinator/src/api/operator/fetch-image.ts": "the signals of one call",
  "coordinator/src/support/examine-nodes.ts": "the signals of one call",
  "coordinator/src/support/node-files.ts": "the signals of one call",
  "coordinator/src/workspaces/content/transfer-service.ts": "the signals of one call",
  "coordinator/src/workspaces/node/sync.ts": "the signals of one stream",
};

/** Methods that reach an `await` before they clear the field, or that are never called twice. */
const SELF_CLEARING_WORK: Readonly<Record<string, string>> = {
  "agent/src/destination/upstream.ts": "dropped by handlers of the promise, which run after the assignment",
  "agent/src/journal/state-files.ts":
    "a change is always waiting when it begins, and it awaits before it ends",
  "agent/src/network/port-table.ts": "awaits first",
  "coordinator/src/control/loop.ts": "awaits first",
  "coordinator/src/store/level/level-journal.ts":
    "called with something to write, and awaits before it writes",
  "coordinator/src/store/etcd/etcd-journal.ts": "called with something to do, and awaits before it does it",
  "coordinator/src/store/core/store-engine.ts": "closing happens once and is never cleared",
};

/** Files that may calculate with the wall clock, with the reason. */
const WALL_CLOCK_SUMS: Readonly<Record<string, string>> = {
  "agent/src/driver/tasks/sample-stats.ts":
    "how long a container ran before this life of the driver, never below 1 ms",
  "agent/src/http/metrics.ts": "shows how long a certificate is valid",
  "agent/src/link/coordinator-link.ts": "certificates end at a time of the wall clock",
  "agent/src/log-guard/main.ts": "a log entry's time",
  "agent/src/log-reader/main.ts": "a log entry's time",
  "agent/src/logs/kept-logs.ts":
    "the end of kept logs outlives the agent and the host; ends too far ahead count as over",
  "agent/src/metrics/measure-usage.ts":
    "whether a container is new to a measurement; at a wrong age one rate is missing",
  "agent/src/metrics/pod-meter.ts": "how long a pod ran before the first measurement, never below zero",
  "agent/src/pods/image-store.ts": "shown as the time of the next try; the wait goes by the monotonic clock",
  "agent/src/pods/pod-loop.ts": "shown as the time of the next try; the wait goes by the monotonic clock",
  "agent/src/probes/probe-runner.ts":
    "how long a container ran before this life of the agent, never below zero",
  "agent/src/runtime/nerdctl/nerdctl-runtime.ts": "the age of files; those in use are known otherwise",
  "agent/src/sessions/serve-attach.ts":
    "a place in a log by the times of its writes, which are wall-clock times",
  "coordinator/src/dashboard/sessions.ts":
    "a session that another process has started is dated by the wall clock",
  "coordinator/src/acting-time/acting-time.ts": "finds out by how much the wall clock was set",
  "coordinator/src/api/operator/drain-node.ts":
    "a drain's end on record; the controller takes it for a duration that passes while the coordinator acts",
  "coordinator/src/certificates/controller.ts": "certificates end by the wall clock; the wait has a cap",
  "coordinator/src/control/addresses/controller.ts":
    "a released address is kept an hour; a clock that goes back keeps it longer, which harms nothing; the wait has a cap",
  "coordinator/src/control/cron/controller.ts": "schedules are wall-clock times; the wait has a cap",
  "coordinator/src/control/eviction/controller.ts":
    "the ages of taints are measured by the monotonic clock and turned into times; the wait has a cap",
  "coordinator/src/control/eviction/taint-ages.ts": "converts a monotonic age into a time for the record",
  "coordinator/src/control/job/reconciler.ts":
    "schedules and ends on record are translated to the time in which the coordinator acted; the wait has a cap",
  "coordinator/src/control/kept-pods/controller.ts":
    "the end of kept pods outlives the coordinator; ends too far ahead count as over, so waits have a cap",
  "coordinator/src/events/recorder.ts": "the age of a stored event at a start, clamped",
  "coordinator/src/follower/leader-link.ts": "grpc-js takes the end of a wait as a time of the wall clock",
  "coordinator/src/gateway/gateway-table.ts": "a certificate's end is a wall-clock time; the wait has a cap",
  "coordinator/src/link/node-liveness.ts": "the age of a stored loss at a start, clamped",
  "coordinator/src/link/outbox.ts":
    "identity tokens expire by the wall clock, and are replaced by the monotonic clock at the latest",
  "coordinator/src/link/stall-detector.ts": "finds out by how much the wall clock was set",
  "coordinator/src/metrics/pushed-metrics.ts":
    "shown as the end of a value, which goes by the monotonic clock",
  "coordinator/src/peers/coordinator-table.ts": "shows how far the clock of a follower is off",
  "coordinator/src/peers/join-cluster.ts": "grpc-js takes deadlines as times of the wall clock",
  "coordinator/src/peers/report-to-leader.ts": "grpc-js takes deadlines as times of the wall clock",
  "coordinator/src/plan/plan-apply.ts": "virtual time",
  "coordinator/src/rpc/node-server/node-call.ts":
    "handlers of grpc-js read deadlines as times of the wall clock",
  "coordinator/src/rpc/token-watch.ts": "API tokens expire by the wall clock; the wait has a cap",
  "coordinator/src/store/conformance/fixture.ts": "the monotonic clock of a test",
  "coordinator/src/support/coordinator-files.ts": "grpc-js takes deadlines as times of the wall clock",
  "coordinator/src/store/etcd/etcd-client.ts": "grpc-js takes deadlines as times of the wall clock",
  "coordinator/src/support/examine-nodes.ts": "shows how far a node's clock is ahead",
  "coordinator/src/what-if/try-out.ts": "virtual time",
  "coordinator/src/workspaces/activity.ts":
    "leaves out records of activity that follow each other closely; a last one in the future is replaced",
  "coordinator/src/reissue.ts": "compares both clocks, to notice that the wall clock was set",
  "coordinator/src/workspaces/content/s3/s3-content-store.ts": "sorts objects by the time of their storage",
};

test("each listener for an abort is removed where it is added", () => {
  const offences = SOURCES.flatMap(findKeptAbortListeners);
  assertOnlyListed(offences, LASTING_ABORT_LISTENERS);
});

test("signals that live long are linked to others only temporarily", () => {
  assertOnlyListed(SOURCES.flatMap(findUnlinkedSignals), UNLINKED_SIGNALS);
});

test("finds a signal that is linked permanently", () => {
  const find = (text: string) => findUnlinkedSignals({ path: "a.ts", text }).length;

  assert.equal(find("const either = AbortSignal.any([signal, late.signal]);"), 1);
  assert.equal(find("// `AbortSignal.any` keeps a set"), 0);
});

test("no field keeps the promise of work that ended before it was assigned", () => {
  const offences = SOURCES.flatMap(findKeptPromises);
  assertOnlyListed(offences, SELF_CLEARING_WORK);
});

test("neither agent nor coordinator measures a duration by the wall clock", () => {
  assertOnlyListed(SOURCES.flatMap(findWallClockSums), WALL_CLOCK_SUMS);
});

test("finds a duration that is measured by the wall clock", () => {
  const find = (text: string) => findWallClockSums({ path: "coordinator/src/a.ts", text }).length;

  assert.equal(find("const retryAtMs = clock.nowMs() + waitMs;"), 1);
  assert.equal(find("const ranMs = Date.now() - began;"), 1);
  assert.equal(find("const leftMs = endMs - this.#world.clock.nowMs();"), 1);
  assert.equal(find("const agoMs = clock.nowMs() - atMs;"), 1);
  assert.equal(find("if (endMs - this.#options.nowMs() < 0) {}"), 1);
  assert.equal(find("const wallMs = clock.nowMs();\nreturn endMs - wallMs;"), 1);
  assert.equal(find("const input = { atMs: clock.nowMs() };\nreturn input.atMs + 5;"), 1);
  assert.equal(find("const nowMs = clock.nowMs();"), 0);
  assert.equal(find("const nowMs = clock.nowMs();\nreturn nowMsOf(pod) - since(nowMs);"), 0);
  assert.equal(find("const nowMs = clock.monotonicMs();\nreturn nowMs - beganMs;"), 0);
  assert.equal(find("const ranMs = clock.monotonicMs() - began;"), 0);
});

test("finds a listener that is never removed", () => {
  const text = 'signal.addEventListener("abort", () => resolve(), { once: true });\n';

  assert.equal(findKeptAbortListeners({ path: "a.ts", text }).length, 1);
  const removed = `${text}signal.removeEventListener("abort", stop);\n`;
  assert.deepEqual(findKeptAbortListeners({ path: "a.ts", text: removed }), []);
});

test("finds work that clears its own field", () => {
  assert.equal(findKeptPromises({ path: "a.ts", text: "this.#making ??= this.#refill();" }).length, 1);
  const cleared = "this.#making ??= this.#refill().finally(() => {\n";
  assert.deepEqual(findKeptPromises({ path: "a.ts", text: cleared }), []);
});

test("each constant of a module is in UPPER_SNAKE_CASE", () => {
  const offences = readAllSources(ROOT).flatMap(findCamelCaseConstants);
  assertOnlyListed(offences, {});
});

test("finds a constant in camelCase", () => {
  const find = (text: string) => findCamelCaseConstants({ path: "a.ts", text }).length;

  for (const text of ["const graceMs = 5 * 1_000;", 'export const name = "a";', "const pattern = /a+/u;"])
    assert.equal(find(text), 1, text);
  for (const text of ["const GRACE_MS = 5_000;", "const graceMs = grace();", "  const graceMs = 5;"])
    assert.equal(find(text), 0, text);
});

/** Files whose types have members with a literal `kind`, with the reason. */
const KIND_DISCRIMINANTS: Readonly<Record<string, string>> = {
  "agent/src/driver/config/option.ts": "`type` is an option's type in HCL",
  "agent/src/link/link-state.ts": "agents write it into files for support, in JSON",
  "agent/src/logs/stream-places.ts": "goes over a socket between programs that may be of different versions",
  "coordinator/src/gateway/route.ts": "the kind of the resource that declares the route",
  "coordinator/src/model/depends-on.ts": "the kind of a workload",
};

/** Files whose unions have types in camelCase, with the reason. */
const CAMEL_CASE_TYPES: Readonly<Record<string, string>> = {
  "agent/src/pods/act/stop-container.ts": "a step of a pod",
  "agent/src/pods/step.ts": "steps are values of a metric's label, and of a field of the log",
  "agent/src/volumes/prepare-volume.ts": "Kubernetes' name",
  "agent/src/volumes/volumes.ts": "Kubernetes' names",
};

test("unions in one process have members with a `type` in kebab-case", () => {
  const sources = readAllSources(ROOT);
  assertOnlyListed(sources.flatMap(findKindDiscriminants), KIND_DISCRIMINANTS);
  assertOnlyListed(sources.flatMap(findCamelCaseTypes), CAMEL_CASE_TYPES);
});

test("finds a member of a union that has no `type` in kebab-case", () => {
  const find = (text: string) => findKindDiscriminants({ path: "a.ts", text }).length;

  assert.equal(
    find(`type A =\n  | { readonly ${'kind: "b"'} }\n  | {\n      readonly ${'kind: "c"'};\n    };`),
    2,
  );
  for (const text of ["  readonly kind: ObjectKind;", 'const a = { kind: "pod" };', '  readonly type: "b";'])
    assert.equal(find(text), 0, text);
  const findTypes = (text: string) => findCamelCaseTypes({ path: "a.ts", text }).length;
  assert.equal(findTypes(`  | { readonly ${'type: "b" | "cD"'} }`), 1);
  assert.equal(findTypes('  | { readonly type: "b-c"; readonly of: "dE" }'), 0);
});

test("classes of errors set their name", () => {
  assertOnlyListed(SOURCES.flatMap(findUnnamedErrors), {});
});

test("finds a class of errors without a name", () => {
  const find = (text: string) => findUnnamedErrors({ path: "a.ts", text }).length;

  const unnamed = "export class AError extends Error {\n}";
  assert.equal(find(unnamed), 1);
  assert.equal(find(unnamed.replace("{", '{\n  override readonly name = "AError";')), 0);
  assert.equal(find(unnamed.replace("{", '{\n  override readonly name = "BError";')), 1);
});

/** Fails for offences that are not listed, and for entries that are no longer needed. */
function assertOnlyListed(offences: readonly Offence[], listed: Readonly<Record<string, string>>): void {
  const unlisted = offences.filter(({ path }) => !(path in listed));
  assert.deepEqual(
    unlisted.map(({ path, line, text }) => `${path}:${line}: ${text}`),
    [],
  );
  const found = new Set(offences.map(({ path }) => path));
  assert.deepEqual(
    Object.keys(listed).filter((path) => !found.has(path)),
    [],
    "listed, but not found any more",
  );
}
