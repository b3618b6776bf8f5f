import type { Taint, UpdateNodeRequest } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import type { Invocation } from "../command/definition.ts";
import { type Command, defineCommand } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { parseLabels } from "./labels.ts";
import { printNodes } from "./node-ls.ts";

const NODE = { name: "NODE", required: true, help: "name of the node" } as const;

export const nodeCordon = defineCommand({
  name: "cordon",
  summary: "Keep new pods off a node; existing pods stay",
  operands: [NODE],
  run: (invocation) => update(invocation, { unschedulable: true }),
});

export const nodeUncordon = defineCommand({
  name: "uncordon",
  summary: "Let a node accept new pods again",
  operands: [NODE],
  run: (invocation) => update(invocation, { unschedulable: false }),
});

export const nodeTaint: Command = defineCommand({
  name: "taint",
  summary: "Keep pods off a node that don't tolerate it",
  details: `EFFECT is NoSchedule (no new pods), PreferNoSchedule (no new pods if other nodes fit) or NoExecute (existing pods leave, too).
A taint with the same key and effect gets the new value.`,
  operands: [NODE, { name: "KEY[=VALUE]:EFFECT", required: true, repeated: true, help: "taints to set" }],
  run: (invocation) => update(invocation, { setTaints: invocation.operands.slice(1).map(parseTaint) }),
});

export const nodeUntaint: Command = defineCommand({
  name: "untaint",
  summary: "Remove taints from a node",
  operands: [
    NODE,
    {
      name: "KEY[:EFFECT]",
      required: true,
      repeated: true,
      help: "taints to remove; every effect without one",
    },
  ],
  run: (invocation) => update(invocation, { removeTaints: invocation.operands.slice(1).map(parseRemoval) }),
});

export const nodeLabel: Command = defineCommand({
  name: "label",
  summary: "Set and remove labels of a node",
  details: `A label that is set here overrides the one that the node reports. KEY- removes it, and the reported value applies again.
forage.dev/gateway=NAME makes the node serve the gateway NAME. A node can't set labels of forage.dev and kubernetes.io itself.`,
  operands: [
    NODE,
    { name: "KEY=VALUE", required: true, repeated: true, help: "labels to set; KEY- removes one" },
  ],
  run: (invocation) => {
    const given = invocation.operands.slice(1);
    const removed = given.filter((text) => !text.includes("="));
    for (const text of removed)
      if (!/^[^=]+-$/.test(text)) throw new CliError("USAGE", `"${text}" is not KEY=VALUE or KEY-`);
    return update(invocation, {
      setLabels: parseLabels(
        "KEY=VALUE",
        given.filter((text) => text.includes("=")),
      ),
      removeLabels: removed.map((text) => text.slice(0, -1)),
    });
  },
});

async function update(invocation: Invocation, change: Partial<UpdateNodeRequest>): Promise<ExitCode> {
  const context = contextOf(invocation);
  const [name = ""] = invocation.operands;
  const request = { name, setTaints: [], removeTaints: [], setLabels: {}, removeLabels: [], ...change };
  const answer = await withCoordinator(context, (coordinator) =>
    coordinator.call(operator.updateNode, request),
  );
  printNodes(context, answer.node === undefined ? [] : [answer.node], true);
  return EXIT.ok;
}

/** Parses a taint. The coordinator validates key, value and effect. */
export function parseTaint(text: string): Taint {
  const [, key, value = "", effect] = /^([^=:]+)(?:=([^:]*))?:([^:]+)$/.exec(text) ?? [];
  if (key === undefined || effect === undefined)
    throw new CliError("USAGE", `"${text}" is not KEY=VALUE:EFFECT or KEY:EFFECT`);
  return { key, value, effect };
}

function parseRemoval(text: string): Taint {
  const [, key, effect = ""] = /^([^=:]+)(?::([^:]+))?$/.exec(text) ?? [];
  if (key === undefined) throw new CliError("USAGE", `"${text}" is not KEY or KEY:EFFECT`);
  return { key, value: "", effect };
}
