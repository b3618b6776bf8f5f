import { messageOf } from "@forage/common/message-of";
import { Semaphore } from "@forage/common/semaphore";
import type { Coordinator } from "../client/coordinator.ts";
import { explain } from "../client/explain.ts";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { plainText } from "../output/plain-text.ts";

/** The most nodes at a time, because they share the coordinator and its connection. */
const NODES_AT_ONCE = 4;

/**
 * Does the work for some nodes at a time. A failure on one node is reported, and the other nodes
 * continue.
 */
export async function onEachNode(
  { signal, world }: Context,
  { endpoint }: Coordinator,
  nodes: readonly string[],
  work: (node: string) => Promise<void>,
): Promise<ExitCode> {
  const turns = new Semaphore(NODES_AT_ONCE);
  const outcomes = await Promise.allSettled(nodes.map((node) => turns.run(signal, () => work(node))));
  if (signal.aborted) throw signal.reason;
  const failures = outcomes.flatMap((outcome, index) =>
    outcome.status === "rejected"
      ? [{ node: nodes[index] ?? "", error: explain(outcome.reason, endpoint) }]
      : [],
  );
  const [first] = failures;
  if (first === undefined) return EXIT.ok;
  if (nodes.length === 1) throw first.error;
  for (const { node, error } of failures) world.stderr.write(`${node}: ${plainText(messageOf(error))}\n`);
  throw new CliError("REFUSED", `it failed on ${failures.length} of ${nodes.length} nodes`);
}
