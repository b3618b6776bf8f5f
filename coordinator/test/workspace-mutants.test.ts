import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { randomOf } from "@forage/common/random";
import { WorkspaceType } from "@forage/proto/core";

const SOURCES = join(import.meta.dirname, "../src/workspaces");
const SUPPORT = join(import.meta.dirname, "support/workspaces");
const PARAMETER = "?mutant=";
/** The number of records. It is small, because a mutant must be detected quickly. */
const RECORDS = 3_000;
const LIVES = 150;
const STEPS = 150;
const TYPES = [
  WorkspaceType.REGULAR,
  WorkspaceType.PREBUILD,
  WorkspaceType.REGULAR,
  WorkspaceType.IMAGEBUILD,
];

/**
 * A file below src/workspaces, a text that occurs in it exactly once, and the wrong text in its
 * place.
 */
const MUTANTS: readonly (readonly [string, string, string])[] = [
  ["confirm.ts", "if (!isSame(transfer, stored)) return", "if (stored === undefined) return"],
  ["confirm.ts", "BigInt(stored.sizeBytes) === archive.sizeBytes &&", ""],
  ["confirm.ts", "    stored.sha256 === archive.sha256\n", "    true\n"],
  [
    "confirm.ts",
    "isFinal ? { ...changed, contentSafe: true } : changed",
    "{ ...changed, contentSafe: true }",
  ],
  ["confirm.ts", "isSnapshot ? snapshotWrites(input, url) : pointerWrites(input)", "pointerWrites(input)"],
  ["confirm.ts", ".slice(0, generations)", ""],
  ["confirm.ts", "[saved, ...older]", "[...older, saved]"],
  ["confirm.ts", "record.transfers.filter(({ id }) => id !== transfer.id)", "[...record.transfers]"],
  ["phase/content.ts", "if (stop === undefined || hasPod(record)", "if (hasPod(record)"],
  ["phase/content.ts", "stop === undefined || hasPod(record) ||", "stop === undefined ||"],
  [
    "phase/content.ts",
    "needsSaving(record) || isKept(record) || nodeLost) return false;",
    "needsSaving(record) || nodeLost) return false;",
  ],
  ["phase/content.ts", "needsSaving(record) || isKept(record) ||", "isKept(record) ||"],
  ["phase/content.ts", " || record.transfers.some(isOrdered)", ""],
  ["phase/content.ts", "contentStage === ContentStage.FAILED || !podCreated || podGoneAcknowledged", "true"],
  ["phase/content.ts", "record.nodeLost || isKept(record) ||", "record.nodeLost ||"],
  [
    "phase/advance.ts",
    "if (phase === record.phase || (RANK[phase] ?? 0) < (RANK[record.phase] ?? 0)) return record;",
    "",
  ],
  ["phase/advance.ts", " || (RANK[phase] ?? 0) < (RANK[record.phase] ?? 0)", ""],
  [
    "phase/advance.ts",
    "if (record.phase === WorkspacePhase.STOPPED) return withoutNode(record, observation);",
    "",
  ],
  [
    "phase/advance.ts",
    'return stopped(saved ? lost : failed(lost, why), "failure", nowMs);',
    'return stopped(lost, "failure", nowMs);',
  ],
  [
    "phase/advance.ts",
    "if (hasPod(record) || needsSaving(record)) return false;",
    "if (hasPod(record)) return false;",
  ],
  [
    "phase/advance.ts",
    "if (hasPod(record) || needsSaving(record)) return false;",
    "if (needsSaving(record)) return false;",
  ],
  ["phase/advance.ts", "find(({ atMs }) => atMs <= nowMs)", "find(({ atMs }) => atMs < nowMs)"],
  ["phase/advance.ts", "|| observation.nowMs < limitMs) return record;", ") return record;"],
  ["phase/advance.ts", "&& isDisposed(record) && !isKept(record);", "&& !isKept(record);"],
  ["phase/conditions.ts", 'if (conditionsOf(record).failed !== "") return record;', ""],
  ["phase/conditions.ts", "if (record.stop !== undefined) return record;", ""],
  [
    "phase/plan.ts",
    "if (record.contentSafe || finalTransferOf(record) !== undefined) return record;",
    "if (record.contentSafe) return record;",
  ],
  ["phase/plan.ts", 'record.stop === undefined ? [{ type: "create-pod" }] : []', '[{ type: "create-pod" }]'],
  ["phase/plan.ts", "if (pod.record.stoppingSince !== undefined) return [];", ""],
  ["phase/plan.ts", "isHasty ? IMMEDIATE_GRACE_SECONDS : NORMAL_GRACE_SECONDS", "NORMAL_GRACE_SECONDS"],
  ["phase/plan.ts", "isDisposed(record) && !isKept", "!isKept"],
  ["phase/plan.ts", "!isKept(record) && nowMs >=", "nowMs >="],
  [
    "phase/plan.ts",
    "const transferCount = record.transferCount + 1;",
    "const transferCount = record.transfers.length + 1;",
  ],
  ["phase/time-out.ts", "if (record.stop !== undefined) return [];", ""],
  ["phase/time-out.ts", "Math.max(unused.limitMs, customMs ?? 0)", "customMs ?? unused.limitMs"],
  ["phase/time-out.ts", "!activity.closed || record.closedTimeoutOff", "!activity.closed"],
  ["phase/time-out.ts", "atMs: Math.max(deadline.atMs, graceMs)", "atMs: deadline.atMs"],
  ["phase/observe-pod.ts", "if (record.podGone) return record;", ""],
  [
    "phase/observe-pod.ts",
    'if (isHeadless(record.type)) return stopped(withTaskFailure(record, pod), "exit", nowMs);',
    "",
  ],
  ["node/order.ts", "isOpen(transfer) && transfer.state !== TransferState.DONE", "isOpen(transfer)"],
  ["node/order.ts", "contentComplete: record.contentStage === ContentStage.READY,", ""],
  [
    "node/apply-report.ts",
    "if (!isOpen(transfer) || transfer.state === TransferState.DONE) return transfer;",
    "if (!isOpen(transfer)) return transfer;",
  ],
  ["node/apply-report.ts", "if (!isOpen(transfer) || transfer.state", "if (transfer.state"],
  ["node/apply-report.ts", "if (after < before || after === 0) return record;", ""],
  ["node/apply-report.ts", "if (after === before && stage !== record.contentStage) return record;", ""],
  [
    "node/apply-report.ts",
    "if (stage === ContentStage.DISPOSED && record.stop === undefined) return record;",
    "",
  ],
  ["node/apply-report.ts", "    return { ...record, contentLost: true };", "    return record;"],
  ["node/apply-report.ts", "&& mustHaveContent(record))", ")"],
  [
    "records.ts",
    "if (before !== undefined && publishedHash(before) === publishedHash(after)) return after;",
    "",
  ],
  ["records.ts", "(before?.statusVersion ?? 0n) + 1n", "before?.statusVersion ?? 0n"],
  ["confirm.ts", "if (!isSame(transfer, stored)) return", "if (false) return"],
  ["confirm.ts", "    stored.object === object &&\n", ""],
  [
    "confirm.ts",
    'compares: [{ type: "mod-revision", key, revision: backup?.revision ?? 0 }],',
    "compares: [],",
  ],
  ["confirm.ts", "isLate ? inOrder(saved, older, generations) : [saved, ...older]", "[saved, ...older]"],
  ["confirm.ts", "order > 0n && saved.order > 0n ? order > saved.order : ", ""],
  ["confirm.ts", "if (instanceId === saved.instanceId) return false;", ""],
  ["confirm.ts", "order: isLate ? record.podGoneVersion : order,", "order,"],
  ["confirm.ts", "others.filter(isNewer).slice(0, kept - 1)", "others.filter(isNewer)"],
  [
    "node/apply-report.ts",
    "stage === ContentStage.READY && !record.podGoneAcknowledged;",
    "stage === ContentStage.READY;",
  ],
  ["node/apply-report.ts", " || orderVersion < record.podGoneVersion)", ")"],
  ["node/apply-report.ts", "|| record.podGoneVersion === 0n ", ""],
  [
    "node/apply-report.ts",
    "if (report.state === TransferState.DONE && report.archive === undefined) return transfer;",
    "",
  ],
  ["node/order.ts", "    dispose,\n", "    dispose: true,\n"],
  ["node/order.ts", "(!dispose && {", "(record.stop === undefined && {"],
  ["phase/content.ts", "|| record.contentLost) return false;", ") return false;"],
  ["phase/content.ts", "!record.contentEverReady || record.contentKept", "record.contentKept"],
  ["phase/advance.ts", "if (record.contentLost) {", "if (record.contentLost && record.contentSafe) {"],
  ["phase/advance.ts", "(node?.ready === false && mayDispose(record))", "node?.ready === false"],
  [
    "phase/advance.ts",
    "if (final?.state !== TransferState.FAILED || record.contentKept) return record;",
    "return record;",
  ],
  [
    "phase/plan.ts",
    "return isUnsaved && isFailed ? { ...record, contentKept: true } : record;",
    "return record;",
  ],
  [
    "phase/plan.ts",
    "state === TransferState.DONE && finishedAt === undefined && kind",
    "state === TransferState.DONE && kind",
  ],
];

/** Modules in the two directories are loaded once for each mutant; all others are shared. */
const mutable = [SOURCES, SUPPORT].map((directory) => `${pathToFileURL(directory).href}/`);
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const [, number] = context.parentURL?.split(PARAMETER) ?? [];
    if (number === undefined || !mutable.some((prefix) => resolved.url.startsWith(prefix))) return resolved;
    return { ...resolved, url: `${resolved.url}${PARAMETER}${number}` };
  },
  load(url, context, next) {
    const loaded = next(url, context);
    const [path = "", number] = url.split(PARAMETER);
    const [file, from, to] = MUTANTS[Number(number)] ?? [];
    if (file === undefined || from === undefined || path !== pathToFileURL(join(SOURCES, file)).href)
      return loaded;
    const text = readFileSync(join(SOURCES, file), "utf8");
    return { ...loaded, source: text.replace(from, () => to ?? "") };
  },
});

interface Support {
  readonly record: typeof import("./support/workspaces/any-record.ts");
  readonly life: typeof import("./support/workspaces/simulated-life.ts");
}

async function load(mutant: number): Promise<Support> {
  const module = (file: string): string => `${pathToFileURL(join(SUPPORT, file)).href}${PARAMETER}${mutant}`;
  return {
    record: (await import(module("any-record.ts"))) as Support["record"],
    life: (await import(module("simulated-life.ts"))) as Support["life"],
  };
}

/** Returns the violated rule; undefined if there is none. */
function brokenRule({ record, life }: Support): string | undefined {
  try {
    for (let seed = 0; seed < RECORDS; seed++) record.checkAnyRecord(randomOf(seed));
    for (let seed = 0; seed < LIVES; seed++) {
      const random = randomOf(seed);
      const simulated = new life.SimulatedLife(random, random.pick(TYPES));
      for (let step = 0; step < STEPS; step++) simulated.step();
      simulated.finish();
    }
    return undefined;
  } catch (error) {
    return String(error);
  }
}

test("violates no rule with the unchanged code", async () => {
  assert.equal(brokenRule(await load(MUTANTS.length)), undefined);
});

for (const [index, [file, from, to]] of MUTANTS.entries())
  test(`detects the mutant of ${file} with ${JSON.stringify(to.trim())} for ${JSON.stringify(from.trim())}`, async () => {
    assert.equal(readFileSync(join(SOURCES, file), "utf8").split(from).length, 2, "the text occurs once");
    assert.notEqual(brokenRule(await load(index)), undefined, "no rule is broken");
  });
