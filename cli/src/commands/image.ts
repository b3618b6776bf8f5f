import type { Node } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf, printListing, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { plainText } from "../output/plain-text.ts";
import { findNode } from "./find.ts";
import { push } from "./image-push.ts";
import { chosenNamespace } from "./namespace-choice.ts";
import { onEachNode } from "./on-each-node.ts";

export const TARGET_FLAGS = {
  node: { type: "list", hint: "NODE", help: "a node; may be repeated" },
  all: { type: "switch", help: "all nodes that are ready" },
} as const;

export const ALL_NAMESPACES = {
  "all-namespaces": { type: "switch", short: "A", help: "for the pods of all namespaces" },
} as const;

const ls = defineCommand({
  name: "ls",
  summary: "List the images on nodes",
  details:
    "Nodes report their images every ten minutes, and seconds after each pull, push, prefetch and removal; at most 500 of each node.",
  flags: { node: TARGET_FLAGS.node },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { node: names } = invocation.flags;
    const nodes = await withCoordinator(context, async (coordinator) =>
      names.length > 0
        ? Promise.all(names.map((name) => findNode(coordinator, name)))
        : (await coordinator.call(operator.listNodes, {})).nodes,
    );
    printListing(context, {
      columns: [
        { title: "NODE", value: ({ node }: NodeImage) => node },
        { title: "IMAGE", value: ({ image }) => image },
      ],
      rows: nodes.flatMap(({ name, report }) =>
        (report?.images ?? []).map((image) => ({ node: name, image })),
      ),
      json: (row) => row,
      name: ({ image }) => image,
      none: "no node has reported an image: nodes list their images every 10 minutes, and seconds after each pull, push, prefetch and rm",
    });
    return EXIT.ok;
  },
});

interface NodeImage {
  readonly node: string;
  readonly image: string;
}

const rm = defineCommand({
  name: "rm",
  summary: "Remove an image from nodes",
  details: `An image that containers use stays. Without --all-namespaces, only an image that belongs to this namespace alone is removed.`,
  operands: [{ name: "IMAGE", required: true, help: "the image's name, such as registry.example/app:1" }],
  flags: { ...TARGET_FLAGS, ...ALL_NAMESPACES },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [image = ""] = invocation.operands;
    const namespace = chosenNamespace(invocation.flags, context.settings);
    return withCoordinator(context, async (coordinator) => {
      const nodes = await targetsOf(coordinator, invocation.flags);
      return onEachNode(context, coordinator, nodes, async (node) => {
        const { absent } = await coordinator.call(operator.removeImage, { node, namespace, image });
        context.world.stdout.write(`${node}: ${image} ${absent ? "does not exist" : "removed"}\n`);
      });
    });
  },
});

const prefetch = defineCommand({
  name: "prefetch",
  summary: "Pull an image on nodes before pods need it",
  details: `With --from, a node that has the image sends it through the coordinator, only the layers that are missing, and no registry is queried.
Both nodes check that pods of the namespace may use the image, and every digest.`,
  operands: [{ name: "IMAGE", required: true, help: "the image's name, such as registry.example/app:1" }],
  flags: {
    ...TARGET_FLAGS,
    "pull-secret": {
      type: "list",
      hint: "NAME",
      help: "registry credentials of the namespace; may be repeated",
    },
    from: { type: "text", hint: "NODE", help: "a node that has the image, in place of the registry" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [image = ""] = invocation.operands;
    const { namespace } = context.settings;
    const pullSecrets = [...invocation.flags["pull-secret"]];
    const { from: fromNode = "" } = invocation.flags;
    if (fromNode !== "" && pullSecrets.length > 0)
      throw new CliError(
        "USAGE",
        "--pull-secret is for a registry, which --from does not query: leave one out",
      );
    return withCoordinator(context, async (coordinator) => {
      const all = await targetsOf(coordinator, invocation.flags);
      const nodes = invocation.flags.all ? all.filter((node) => node !== fromNode) : all;
      return onEachNode(context, coordinator, nodes, async (node) => {
        let last = "";
        const request = { node, namespace, image, pullSecrets, fromNode };
        for await (const { message } of coordinator.stream(operator.prefetchImage, request)) {
          if (message !== last) context.world.stderr.write(`${node}: ${plainText(message)}\n`);
          last = message;
        }
        context.world.stdout.write(`${node}: ${image} is on the node\n`);
      });
    });
  },
});

const pushCommand = defineCommand({
  name: "push",
  summary: "Send an image to nodes without a registry",
  details: `IMAGE is an image of docker, nerdctl or podman on this machine; ARCHIVE is what they save, or an OCI layout in a tar file, plain or compressed by gzip or zstd; - reads one from standard input.
Only layers that a node lacks are sent. Pods with the pull policy IfNotPresent or Never then start without a registry. Pods of other namespaces can't use the image, unless it was pushed with --all-namespaces. A push that ended early can be repeated.`,
  operands: [{ name: "IMAGE|ARCHIVE", required: true, help: "what to send" }],
  flags: {
    ...TARGET_FLAGS,
    ...ALL_NAMESPACES,
    name: {
      type: "text",
      hint: "IMAGE",
      help: "the image's name on the nodes; by default the one that it has",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const [operand = ""] = invocation.operands;
    const namespace = chosenNamespace(flags, context.settings);
    return withCoordinator(context, async (coordinator) => {
      const nodes = await targetsOf(coordinator, flags);
      return push({ context, coordinator, operand, nodes, namespace, name: flags.name });
    });
  },
});

export const image = groupCommands("image", "Send images to nodes, and list, prefetch and remove them", [
  pushCommand,
  ls,
  prefetch,
  rm,
]);

export interface TargetFlags {
  readonly node: readonly string[];
  readonly all: boolean;
}

/**
 * Returns the names of the nodes. Given names are not looked up, because a token for one namespace
 * may not list nodes; the call itself checks them.
 */
export async function targetsOf(
  coordinator: Coordinator,
  { node, all }: TargetFlags,
): Promise<readonly string[]> {
  if (all === node.length > 0)
    throw new CliError("USAGE", "name nodes with --node, or all of them with --all");
  if (!all) return [...new Set(node)];
  const { nodes } = await coordinator.call(operator.listNodes, {});
  const ready = nodes.filter((it: Node) => it.ready).map(({ name }) => name);
  if (ready.length === 0) throw new CliError("NOT_FOUND", "no node is ready");
  return ready;
}
