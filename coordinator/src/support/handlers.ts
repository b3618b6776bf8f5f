import { scrubText } from "@forage/common/scrub-text";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { Clock } from "../time/clock.ts";
import { type CoordinatorFilesOptions, coordinatorFiles, directoriesOf } from "./coordinator-files.ts";
import { type KnownValuesOptions, knownValues } from "./known-values.ts";
import { chooseNodes, type NodeFilesOptions, nodeFiles } from "./node-files.ts";
import { ownFiles, type SupportCalls, type SupportSources } from "./own-files.ts";
import type { PlannedFile } from "./process-files.ts";
import type { SupportFile } from "./support-file.ts";
import { readPlanned, supportParts } from "./support-parts.ts";

export interface SupportOptions extends Omit<KnownValuesOptions, "workspaces">, NodeFilesOptions {
  readonly clock: Clock;
  /**
   * The sources of support bundles; undefined if this coordinator makes none, as in simulations.
   */
  readonly support?: (SupportSources & Pick<CoordinatorFilesOptions, "connect">) | undefined;
}

type Response = wire.GetSupportBundleResponse;

const MAX_NAMED_NODES = 50;
const MAX_CHOSEN_NODES = 20;
const NODES_AT_ONCE = 4;
/**
 * The most coordinators whose files are collected at a time, because files are in memory until they
 * are sent.
 */
const COORDINATORS_AT_ONCE = 2;

/** Returns the RPC that sends a support bundle. One bundle is made at a time. */
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
        const own = ownFiles({ ...support, calls }, context);
        const { coordinators } = await calls.listCoordinators({}, context);
        const followers = coordinators.filter(({ leads }) => !leads);
        const of = { nodes: request.nodes, followers, connect: support.connect };
        const { workspaces } = support;
        const known = knownValues({ ...options, workspaces });
        const clean = (text: string): string => known.scrub(scrubText(text));
        yield* supportParts(files(own, of, context.signal, options), clean);
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
      `nodes: ${names.length} are named; at most ${MAX_NAMED_NODES} are allowed`,
    );
  const unknown = names.find((name) => state.node(name) === undefined);
  if (unknown !== undefined)
    throw new CoordinatorError(
      "NOT_FOUND",
      `there is no node "${unknown}": \`forage node ls\` lists the nodes`,
    );
}

interface Others {
  /** The names of the nodes; empty means those with problems first. */
  readonly nodes: readonly string[];
  readonly followers: readonly wire.Coordinator[];
  readonly connect: CoordinatorFilesOptions["connect"];
}

async function* files(
  own: readonly PlannedFile[],
  { nodes, followers, connect }: Others,
  signal: AbortSignal,
  options: SupportOptions,
): AsyncGenerator<SupportFile> {
  for (const planned of own) yield await readPlanned(planned);
  const { clock } = options;
  const directories = directoriesOf(followers);
  const ofFollower = (it: wire.Coordinator, at: number): Promise<SupportFile[]> =>
    coordinatorFiles(it, directories[at] ?? "", signal, { connect, clock });
  yield* inTurn(followers, COORDINATORS_AT_ONCE, signal, ofFollower);
  const { chosen, rest } = chooseNodes(options.state.nodes(), nodes, MAX_CHOSEN_NODES);
  yield* inTurn(chosen, NODES_AT_ONCE, signal, (node) => nodeFiles(node, signal, options));
  if (rest.length > 0) {
    const problem = `${rest.length} more nodes were left out: select nodes with --node`;
    yield { path: "nodes/others.txt", content: rest.map((name) => `${name}\n`).join(""), problem };
  }
}

/** Reads the files of several items concurrently, and yields them in order. */
async function* inTurn<T>(
  all: readonly T[],
  atOnce: number,
  signal: AbortSignal,
  read: (it: T, at: number) => Promise<SupportFile[]>,
): AsyncGenerator<SupportFile> {
  for (let first = 0; first < all.length && !signal.aborted; first += atOnce) {
    const some = all.slice(first, first + atOnce);
    for (const found of await Promise.all(some.map((it, at) => read(it, first + at)))) yield* found;
  }
}
