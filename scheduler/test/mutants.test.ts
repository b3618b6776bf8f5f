import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { build, type Plugin } from "esbuild";

const SOURCES = join(import.meta.dirname, "../src");

// Few seeds, because a mutant that only a long run detects counts as undetected. The original program passes with all
// of them.
const SEEDS = "100";

const ALL_RULES = "all-rules.ts";

/** The file, a text that occurs in it exactly once, and its replacement. */
const MUTANTS: [string, string, string][] = [
  [
    "match/requirement.ts",
    "? (actual) => !found(actual)",
    "? (actual) => actual !== undefined && !found(actual)",
  ],
  ["match/requirement.ts", "? number > bound : number < bound", "? number < bound : number > bound"],
  ["match/node-selector.ts", "if (isEmptyTerm(term)) return never;", ""],
  ["match/taints.ts", "if (effect && effect !== taint.effect) return false;", ""],
  ["match/taints.ts", 'taint.effect !== "PreferNoSchedule" && ', ""],
  ["match/host-ports.ts", "ipA === ipB || ipA === ANY_ADDRESS || ipB === ANY_ADDRESS", "ipA === ipB"],
  ["match/pod-matcher.ts", "(revision === undefined || pod.revision === revision) &&\n      tests", "tests"],
  ["pod/pod-requests.ts", "      add(running, own);\n      add(sidecars, own);", "      add(sidecars, own);"],
  ["pod/pod-requests.ts", "  raise(running, startPeak);", ""],
  ["pod/demand.ts", "table.podsFree[node] = (table.podsFree[node] ?? 0) - sign;", ""],
  [
    "pod/pod-rules.ts",
    "selector.empty ? selectorMatcher(undefined, [spec.namespace]) : selector",
    "selector",
  ],
  ["state/fleet-state.ts", "if (!countsTerminating) this.#add(counter, node, terminating ? -1 : 1);", ""],
  ["state/fleet-state.ts", "if (fresh.length > 0) this.#subtractUsed(fresh);", ""],
  ["state/fleet-state.ts", "    this.pods.setClass(pod, podClass);\n", ""],
  [
    "state/fleet-state.ts",
    "    this.pods.remove(pod);\n    this.log.push(node);\n    this.freed.push(node);",
    "    this.pods.remove(pod);\n    this.log.push(node);",
  ],
  ["state/fleet-state.ts", "counter.version++;", ""],
  ["preempt/trial.ts", "if (this.#state.pods.terminating[pod] === 1) return;", ""],
  ["state/domain-counter.ts", "if (candidate < this.least) this.least = candidate;", ""],
  ["state/topology.ts", 'if (key === "hostname") return', 'if (key === "never") return'],
  ["place/admit.ts", "demand.cpu > (cpu.free[node] ?? 0)", "demand.cpu >= (cpu.free[node] ?? 0)"],
  ["place/admit.ts", "(counter.counts[domain] ?? 0) + self - least", "(counter.counts[domain] ?? 0) - least"],
  ["place/admit.ts", "return together || (!anywhere && matchesItself);", "return together || matchesItself;"],
  [
    "place/live-rules.ts",
    '...identity.ruleCounters.filter((c) => c.kind === "anti-affinity").map((c) => c.counter),',
    "",
  ],
  ["place/live-rules.ts", '...identity.ruleCounters.filter((c) => c.kind !== "anti-affinity"),', ""],
  ["place/kube-score.ts", "const part = most === 0 ? MAX :", "const part = most === 0 ? 0 :"],
  [
    "place/class-cache.ts",
    "if (group === before && local === this.#local[node]) return;",
    "if (group === before) return;",
  ],
  [
    "place/pack-best.ts",
    "if (bound + prefersMost >= this.#most)",
    "if (bound + prefersMost - 40 >= this.#most)",
  ],
  ["preempt/preempt.ts", "if (own >= priority) continue;", "if (own > priority) continue;"],
  ["preempt/trial.ts", "for (const counter of always) counter.add(this.#node, -freed);", ""],
];

test("detects a defect in any rule", { concurrency: 2 }, async (t) => {
  await t.test("the original program passes", async () => assert.equal(await runMutant(undefined), 0));
  const running: Promise<void>[] = [];
  for (const mutant of MUTANTS) {
    const [file, from] = mutant;
    running.push(
      t.test(`${file}: ${from.trim().slice(0, 60)}`, async () =>
        assert.notEqual(await runMutant(mutant), 0, "not caught"),
      ),
    );
  }
  await Promise.all(running);
});

/** Bundles the tests with the mutant in place and runs them until one fails. Returns the exit code. */
async function runMutant(mutant: [string, string, string] | undefined): Promise<number | null> {
  const dir = mkdtempSync(join(tmpdir(), "forage-mutant-"));
  try {
    const program = join(dir, "all-rules.mjs");
    await build({
      entryPoints: [join(import.meta.dirname, ALL_RULES)],
      outfile: program,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node24",
      plugins: mutant === undefined ? [] : [replacing(mutant)],
      logLevel: "error",
    });
    const env = { ...process.env, SEEDS, NODE_TEST_CONTEXT: undefined };
    const child = spawn(process.execPath, [program], { env, stdio: "ignore" });
    const [code] = (await once(child, "exit")) as [number | null];
    return code;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Returns a plugin that replaces the text of one file. */
function replacing([file, from, to]: [string, string, string]): Plugin {
  const path = join(SOURCES, file);
  return {
    name: "mutant",
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, (loaded) => {
        if (loaded.path !== path) return undefined;
        const text = readFileSync(path, "utf8");
        assert.equal(text.split(from).length, 2, `${file} holds it once: ${from}`);
        return { contents: text.replace(from, () => to), loader: "ts" };
      });
    },
  };
}
