import { messageOf } from "@forage/common/message-of";
import { scrubText } from "@forage/common/scrub-text";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { type KnownValuesOptions, knownValues } from "./known-values.ts";
import { chooseNodes, type NodeFilesOptions, nodeFiles } from "./node-files.ts";
import { ownFiles, type PlannedFile, type SupportCalls, type SupportSources } from "./own-files.ts";
import { limited, type SupportFile } from "./support-file.ts";

export interface SupportOptions extends KnownValuesOptions, NodeFilesOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Undefined: this coordinator makes no support bundles, as in simulations. */
  readonly support?: SupportSources | undefined;
}

type Response = wire.GetSupportBundleResponse;

const MAX_NAMED_NODES = 50;
const MAX_CHOSEN_NODES = 20;
const NODES_AT_ONCE = 4;
/** All of a busy cluster of a thousand nodes, except its oldest events. */
const MAX_FILE_LENGTH = 8 * 1024 * 1024;
const MAX_TOTAL_LENGTH = 96 * 1024 * 1024;
/** Fits a message of 4 MiB, also where each character takes three bytes. */
const CHUNK_LENGTH = 256 * 1024;

/** Returns the call that sends a support bundle. One is made at a time. */
export function supportHandlers(
  options: SupportOptions,
  calls: SupportCalls,
): {
  getSupportBundle(request: wire.GetSupportBundleRequest, context: CallContext): AsyncGenerator<Response>;
} {
  let isBusy = false;
  return {
    getSupportBundle: async function* (request, context) {
      const { support } = options;
      if (support === undefined)
        throw new CoordinatorError("FAILED_PRECONDITION", "this coordinator makes no support bundles");
      checkNodes(request.nodes, options);
      if (isBusy)
        throw new CoordinatorError(
          "RESOURCE_EXHAUSTED",
          "another support bundle is being made: try again later",
        );
      isBusy = true;
      try {
        const { store, clock } = options;
        const own = ownFiles({ ...support, calls, store, nowMs: clock.nowMs }, context);
        yield* sent(files(own, request.nodes, context.signal, options), options);
      } finally {
        isBusy = false;
      }
    },
  };
}

function checkNodes(names: readonly string[], { state }: SupportOptions): void {
  if (names.length > MAX_NAMED_NODES)
    throw new CoordinatorError(
      "INVALID",
      `nodes: ${names.length} are named, and at most ${MAX_NAMED_NODES} are asked`,
    );
  const unknown = names.find((name) => state.node(name) === undefined);
  if (unknown !== undefined)
    throw new CoordinatorError(
      "NOT_FOUND",
      `there is no node "${unknown}": \`forage node ls\` lists the nodes`,
    );
}

async function* files(
  own: readonly PlannedFile[],
  names: readonly string[],
  signal: AbortSignal,
  options: SupportOptions,
): AsyncGenerator<SupportFile> {
  for (const { path, content } of own) {
    yield await content().then(
      (text) => ({ path, content: text, problem: "" }),
      (error: unknown) => ({ path, content: "", problem: messageOf(error) }),
    );
  }
  const { chosen, rest } = chooseNodes(options.state.nodes(), names, MAX_CHOSEN_NODES);
  for (let first = 0; first < chosen.length && !signal.aborted; first += NODES_AT_ONCE) {
    const some = chosen.slice(first, first + NODES_AT_ONCE);
    for (const found of await Promise.all(some.map((node) => nodeFiles(node, signal, options)))) yield* found;
  }
  if (rest.length > 0) {
    const problem = `${rest.length} more nodes were left out: select nodes with --node`;
    yield { path: "nodes/others.txt", content: rest.map((name) => `${name}\n`).join(""), problem };
  }
}

/** Leaves secrets out of the files, and sends as much of them as the limits allow. */
async function* sent(found: AsyncIterable<SupportFile>, options: SupportOptions): AsyncGenerator<Response> {
  const known = knownValues(options);
  const clean = (text: string): string => known.scrub(scrubText(text));
  let room = MAX_TOTAL_LENGTH;
  for await (const file of found) {
    const { path, content, problem } = limited(
      { ...file, content: clean(file.content), problem: clean(file.problem) },
      Math.min(MAX_FILE_LENGTH, room),
    );
    room -= content.length;
    for (let at = 0; at < content.length; at += CHUNK_LENGTH)
      yield { path, content: Buffer.from(content.slice(at, at + CHUNK_LENGTH)), problem: "" };
    if (content === "" || problem !== "") yield { path, content: Buffer.alloc(0), problem };
  }
}
