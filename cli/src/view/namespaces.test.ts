import assert from "node:assert/strict";
import { test } from "node:test";
import { Namespace } from "@forage/proto/forage/operator/v1/operator";
import { plain } from "../output/paint.ts";
import { type Column, renderTable } from "../output/table.ts";
import {
  namespaceColumns,
  policyColumns,
  quotaColumns,
  quotaRows,
  shownPolicies,
  violationLines,
} from "./namespaces.ts";

type Change = Parameters<typeof Namespace.fromPartial>[0];

function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  return renderTable(columns, rows, { wide: false, paint: plain })
    .trimEnd()
    .split("\n")
    .map((line) => line.trim().replaceAll(/ {2,}/g, " | "));
}

function rightOf<Row>(columns: readonly Column<Row>[]): string[] {
  return columns.filter(({ alignRight }) => alignRight).map(({ title }) => title);
}

/** Returns each policy as `TOKENS PROFILE`. */
function policiesOf(policies: NonNullable<Change["policies"]>): string[] {
  const shown = shownPolicies(Namespace.fromPartial({ name: "shop", policies }));
  return tableOf(policyColumns(), shown)
    .slice(1)
    .map((line) => line.replace("shop | ", "").replace(/ \| -$/, ""));
}

test("lists the usage and quota of each namespace", () => {
  const namespaces: Change[] = [
    { name: "free", used: { pods: "2" } },
    {
      ...{ name: "shop", quota: { pods: "10", cpu: "4" }, used: { pods: "3", memory: "1Gi" } },
      policies: [{ profile: "restricted" }, { role: "global", profile: "baseline" }],
    },
  ];
  assert.deepEqual(
    tableOf(
      namespaceColumns(),
      namespaces.map((it) => Namespace.fromPartial(it)),
    ),
    [
      "NAMESPACE | POLICY | PODS | CPU | MEMORY | OBJECTS | BYTES",
      "free | baseline (default) | 2 | 0 | 0 | 0 | 0",
      "shop | restricted, global: baseline | 3/10 | 0/4 | 1Gi | 0 | 0",
    ],
  );
});

test("aligns amounts on the right", () => {
  assert.deepEqual(rightOf(namespaceColumns()), ["PODS", "CPU", "MEMORY", "OBJECTS", "BYTES"]);
  assert.deepEqual(rightOf(quotaColumns()), ["USED", "LIMIT"]);
});

test("shows the default of a policy that is not set", () => {
  assert.deepEqual(policiesOf([]), ["editor, admin | baseline (default)", "global | privileged (default)"]);
});

test("shows the default for editors and admins until each of them has a policy", () => {
  const [editor, admin] = [
    { role: "editor", profile: "restricted" },
    { role: "admin", profile: "privileged" },
  ];
  const rest = ["editor, admin | baseline (default)", "global | privileged (default)"];
  assert.deepEqual(policiesOf([editor]), ["editor | restricted", ...rest]);
  assert.deepEqual(policiesOf([admin]), ["admin | privileged", ...rest]);
  assert.deepEqual(policiesOf([editor, admin]), [
    ...["editor | restricted", "admin | privileged", "global | privileged (default)"],
  ]);
  assert.deepEqual(policiesOf([{ profile: "restricted" }, { role: "global", profile: "baseline" }]), [
    ...["editor, admin | restricted", "global | baseline"],
  ]);
});

test("lists what a policy allows in addition to its profile", () => {
  const policy = {
    ...{ role: "global", profile: "baseline", privileged: true, hostNetwork: true },
    ...{ hostPaths: ["/a", "/b"], devices: ["/dev/fuse"] },
  };
  const [allowed, nothing] = [policy, { profile: "restricted" }].map((it) =>
    tableOf(policyColumns(), shownPolicies(Namespace.fromPartial({ policies: [it] }))),
  );
  assert.match(
    allowed?.[1] ?? "",
    /privileged; host network; host paths: \/a, \/b; devices only: \/dev\/fuse$/,
  );
  assert.match(nothing?.[1] ?? "", /restricted \| -$/);
});

test("shows each resource of a quota with its use and its limit", () => {
  const rowsOf = (change: Change): string[] =>
    tableOf(quotaColumns(), quotaRows(Namespace.fromPartial(change)));
  const quota = { pods: "10" };
  assert.deepEqual(rowsOf({ name: "shop", quota, used: { pods: "3", cpu: "1" } }), [
    "NAMESPACE | RESOURCE | USED | LIMIT",
    "shop | pods | 3 | 10",
    "shop | cpu | 1 | none",
    "shop | memory | 0 | none",
    "shop | objects | 0 | none",
    "shop | bytes | 0 | none",
  ]);
  assert.equal(rowsOf({ name: "shop", quota, defaultQuota: true })[1], "shop | pods | 0 | 10 (default)");
});

test("warns of each resource that violates a policy, and reports the number of omitted ones", () => {
  const violations = [
    { kind: "job", name: "a", field: "spec.volumes[0]", message: "host paths are refused" },
  ];
  const linesOf = (violatingResources: number): string[] =>
    violationLines(Namespace.fromPartial({ name: "shop", violations, violatingResources }));
  const first = "warning: job/a violates the policy: spec.volumes[0]: host paths are refused";
  assert.deepEqual(linesOf(1), [first]);
  assert.deepEqual(linesOf(3), [first, "warning: 2 more resources of namespace shop violate the policy"]);
});
