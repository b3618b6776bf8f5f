import type { Hello, NodeReport } from "@forage/proto/forage/agent/v1/agent";
import { NodeStatusRecord } from "@forage/proto/forage/store/v1/store";
import { parseAmount, SchedulerError } from "@forage/scheduler";
import { CoordinatorError, type FieldViolation } from "../errors.ts";
import { encodeRecord } from "../model/codec.ts";
import { nodeKey, reportKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";

/**
 * The limit of each list in a report: amounts, labels, conditions and images of one host. Without it, a node could fill the
 * coordinator's memory.
 */
const MAX_ENTRIES = 10_000;
const MAX_TEXT_LENGTH = 1_024;

/** Validates a node's report before it is stored. @throws CoordinatorError INVALID with every invalid value. */
export function checkNodeReport(report: NodeReport | undefined): void {
  if (report === undefined) throw invalid([{ field: "node", description: "must be set" }]);
  const violations = [
    ...amountViolations("capacity", report.capacity),
    ...amountViolations("allocatable", report.allocatable),
    ...sizeViolations(report),
  ];
  if (violations.length > 0) throw invalid(violations);
}

/**
 * Writes the node's report if it changed. @throws CoordinatorError INVALID, or PERMISSION_DENIED if the node was removed.
 */
export async function recordNodeReport(
  node: string,
  hello: Pick<Hello, "node" | "agentVersion" | "bootId">,
  { store, state, clock }: { readonly store: Store; readonly state: ClusterView; readonly clock: Clock },
): Promise<void> {
  checkNodeReport(hello.node);
  const known = state.node(node)?.report;
  const record: NodeStatusRecord = {
    name: node,
    report: hello.node,
    agentVersion: hello.agentVersion,
    bootId: hello.bootId,
    observedAt: toTimestamp(clock.nowMs()),
  };
  const same = known !== undefined && sameReport({ ...known, observedAt: record.observedAt }, record);
  if (same) return;
  const result = await store.txn(
    [{ type: "exists", key: nodeKey(node) }],
    [{ type: "put", key: reportKey(node), value: encodeRecord(NodeStatusRecord, record) }],
  );
  await state.reached(result.revision);
  if (!result.succeeded)
    throw new CoordinatorError("PERMISSION_DENIED", `node ${node} was removed: join again with a new token`);
}

function sameReport(a: NodeStatusRecord, b: NodeStatusRecord): boolean {
  return Buffer.from(NodeStatusRecord.encode(a).finish()).equals(NodeStatusRecord.encode(b).finish());
}

function amountViolations(field: string, amounts: Readonly<Record<string, string>>): FieldViolation[] {
  return Object.entries(amounts).flatMap(([resource, text]) => {
    try {
      parseAmount(resource, text);
      return [];
    } catch (error) {
      if (!(error instanceof SchedulerError)) throw error;
      return [{ field: `node.${field}[${resource.slice(0, 100)}]`, description: error.message }];
    }
  });
}

function sizeViolations({
  capacity,
  allocatable,
  labels,
  conditions,
  images,
  address,
}: NodeReport): FieldViolation[] {
  const maps = { capacity, allocatable, labels };
  const texts = Object.entries(maps).flatMap(([field, map]) =>
    Object.entries(map).flatMap((pair) => pair.map((text) => ({ field, text }))),
  );
  const long = [...texts, { field: "address", text: address }].filter(
    ({ text }) => text.length > MAX_TEXT_LENGTH,
  );
  const counts = { ...mapSizes(maps), conditions: conditions.length, images: images.length };
  const many = Object.entries(counts).filter(([, count]) => count > MAX_ENTRIES);
  return [
    ...long.map(({ field }) => ({
      field: `node.${field}`,
      description: "contains a text that exceeds the limit",
    })),
    ...many.map(([field]) => ({ field: `node.${field}`, description: `must be at most ${MAX_ENTRIES}` })),
  ];
}

function mapSizes(maps: Readonly<Record<string, object>>): Record<string, number> {
  return Object.fromEntries(Object.entries(maps).map(([field, map]) => [field, Object.keys(map).length]));
}

function invalid(violations: readonly FieldViolation[]): CoordinatorError {
  const text = violations.slice(0, 3).map(({ field, description }) => `${field}: ${description}`);
  return new CoordinatorError("INVALID", `the node's report is invalid: ${text.join("; ")}`, { violations });
}
