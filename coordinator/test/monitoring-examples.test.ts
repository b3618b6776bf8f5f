import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";

const root = new URL("../../", import.meta.url);
const text = (path: string): string => readFileSync(new URL(path, root), "utf8");
const example = (name: string): string => text(`examples/monitoring/${name}`);

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly action: string };
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** Metrics of libraries, which the page of metrics does not list individually. */
const FOREIGN: Readonly<Record<string, readonly string[]>> = {
  up: [],
  process_resident_memory_bytes: [],
  envoy_cluster_upstream_rq_total: ["envoy_cluster_name"],
  envoy_cluster_upstream_rq_xx: ["envoy_cluster_name", "envoy_response_code_class"],
};
/** Labels that the scrape configurations add, and the label of histogram buckets. */
const ADDED_LABELS = ["job", "instance", "node", "le"];
const WORDS = /\b(by|ignoring|time|rate|increase|delta|sum|topk|absent|histogram_quantile)\b/g;

/** The labels of each metric on the page of metrics. */
const documented = new Map(
  [...text("docs/reference/metrics.md").matchAll(/^\| `(forage_\w+)` \| ([^|]*) \|/gm)].map(
    ([, name = "", labels = ""]) =>
      [name, [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label ?? "")] as const,
  ),
);

const groups = (parse(example("alerts.yml")) as { groups: readonly { rules: readonly Rule[] }[] }).groups;
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(example("grafana-dashboard.json")) as { readonly panels: readonly Panel[] };
const targets = panels.flatMap((panel) => panel.targets ?? []);

test("refers only to existing metrics and labels in alert rules", () => {
  assert.ok(rules.length > 20);
  for (const { alert, expr, annotations } of rules) {
    const labels = checkExpression(expr, alert);
    for (const [, label = ""] of `${annotations.summary}${annotations.action}`.matchAll(/\$labels\.(\w+)/g))
      assert.ok(labels.has(label), `${alert}: its metric has no label ${label}`);
  }
});

test("gives each alert a unique name, a severity, and an action", () => {
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, labels, annotations } of rules) {
    assert.match(alert, /^Forage[A-Z]\w+$/);
    assert.match(labels.severity, /^(critical|warning)$/, alert);
    assert.ok(annotations.summary.length > 20 && annotations.action.length > 5, alert);
  }
});

test("refers only to existing metrics and labels in the Grafana dashboard", () => {
  assert.ok(targets.length > 20);
  for (const { expr, legendFormat } of targets) {
    const labels = checkExpression(expr, expr);
    for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      assert.ok(labels.has(label), `${expr}: it has no label ${label}`);
  }
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
});

test("reads the default ports of coordinator and agent in the scrape configurations", () => {
  const targetsOf = (name: string) => {
    const { scrape_configs: jobs } = parse(example(name)) as {
      readonly scrape_configs: readonly {
        readonly job_name: string;
        readonly metrics_path?: string;
        readonly static_configs: readonly { readonly targets: readonly string[] }[];
      }[];
    };
    return jobs.map((job) => [
      job.job_name,
      job.metrics_path ?? "/metrics",
      ...job.static_configs.flatMap((each) => each.targets),
    ]);
  };
  assert.deepEqual(targetsOf("prometheus.yml"), [["forage-coordinator", "/metrics", "127.0.0.1:7601"]]);
  assert.deepEqual(targetsOf("prometheus-host.yml"), [
    ["forage-agent", "/metrics", "127.0.0.1:7602"],
    ["forage-gateway", "/gateway/metrics", "127.0.0.1:7602"],
  ]);
  const jobs = new Set(["forage-coordinator", "forage-agent", "forage-gateway"]);
  const expressions = [...rules, ...targets].map(({ expr }) => expr).join("\n");
  for (const [, job = ""] of expressions.matchAll(/job="([^"]+)"/g)) assert.ok(jobs.has(job), job);
  assert.match(text("docs/reference/agent-settings.md"), /`http\.listen` .*`127\.0\.0\.1:7602`/);
  assert.match(text("docs/reference/coordinator.md"), /"listen":"127\.0\.0\.1:7601"/);
});

/**
 * Checks the metrics of an expression and their labels. Returns all labels that its result may
 * have.
 */
function checkExpression(expr: string, where: string): Set<string> {
  const plain = expr.replaceAll(/"[^"]*"/g, '""');
  assert.equal(count(plain, "("), count(plain, ")"), where);
  const names = [...plain.matchAll(/(?<![\w$])([a-z]\w*)(?=[\s{[)]|$)/g)]
    .map(([, name = ""]) => name)
    .filter((name) => !isLabelOrWord(plain, name));
  assert.ok(names.length > 0, `${where}: no metric was found`);
  const labels = new Set(ADDED_LABELS);
  for (const name of names) for (const label of labelsOf(name, where)) labels.add(label);
  const used = [
    ...[...plain.matchAll(/(\w+)\s*(?:=~|!=|!~|=)\s*""/g)].map(([, label = ""]) => label),
    ...labelLists(plain),
  ];
  for (const label of used) assert.ok(labels.has(label), `${where}: there is no label ${label}`);
  return labels;
}

function labelsOf(name: string, where: string): readonly string[] {
  const known =
    documented.get(name) ?? documented.get(name.replace(/_(bucket|sum|count)$/, "")) ?? FOREIGN[name];
  assert.ok(known, `${where}: there is no metric ${name}`);
  return known;
}

/** Returns the labels after `by` and `ignoring`. */
function labelLists(plain: string): string[] {
  return [...plain.matchAll(/\b(?:by|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(",").map((label) => label.trim()),
  );
}

function isLabelOrWord(plain: string, name: string): boolean {
  return [...plain.matchAll(WORDS)].some(([word]) => word === name) || labelLists(plain).includes(name);
}

function count(textOf: string, character: string): number {
  return textOf.split(character).length - 1;
}
