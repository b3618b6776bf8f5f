import { messageOf } from "@forage/common/message-of";
import type { FetchImageRequest, FetchImageResponse, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../../errors.ts";
import type { SessionBroker } from "../../link/session-broker.ts";
import { imagesOf } from "../../model/images.ts";
import type { CallContext } from "../../rpc/caller.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry } from "../../state/entries.ts";
import { labelsOf } from "../../state/node-labels.ts";
import type { Clock } from "../../time/clock.ts";
import { openOnNode, openTarget, pushShares, type SessionContext } from "./images.ts";
import { namedDigest, relayImage } from "./relay-image.ts";

export interface FetchImageOptions {
  readonly state: ClusterView;
  readonly broker: SessionBroker;
  readonly clock: Clock;
}

/** Each one that fails has read at most what it has sent. */
const SOURCES_MAX = 3;
const PROGRESS_MS = 2_000;
const ZONE = "topology.kubernetes.io/zone";

/** Returns the call by which a node gets an image from another one. The namespace's rights are checked by the node that sends it. */
export function fetchImageHandler(
  options: FetchImageOptions,
): (request: FetchImageRequest, context: CallContext) => AsyncGenerator<FetchImageResponse> {
  const slots = pushShares();
  return async function* ({ image, namespace }, { caller, signal }) {
    if (caller.kind !== "node") throw new CoordinatorError("PERMISSION_DENIED", "only nodes fetch images");
    const node = caller.nodeId;
    assertMayFetch(node, image, namespace, options.state);
    const sources = chooseSources(node, image, options.state);
    if (sources.length === 0)
      throw new CoordinatorError("NOT_FOUND", "no other node that is connected has the image");
    const release = slots.take(`node ${node}`);
    try {
      const problems: string[] = [];
      for (const fromNode of sources) {
        try {
          yield* relayed({ image, namespace, node, fromNode }, { caller, signal }, options);
          return;
        } catch (error) {
          signal.throwIfAborted();
          problems.push(`${fromNode}: ${messageOf(error)}`);
        }
      }
      throw new CoordinatorError("NOT_FOUND", problems.join("; "));
    } finally {
      release();
    }
  };
}

/** A node gets only what a pod of it needs, and only what a digest names: a tag may stand for something else on each node. */
function assertMayFetch(node: string, image: string, namespace: string, state: ClusterView): void {
  const digest = namedDigest(image);
  if (digest === undefined)
    throw new CoordinatorError("INVALID", "image: only names with a digest come from other nodes");
  const isUsed = state
    .podsOnNode(node)
    .some(({ record }) => record.namespace === namespace && usesDigest(record.template, digest));
  if (!isUsed)
    throw new CoordinatorError(
      "PERMISSION_DENIED",
      `no pod of the namespace ${namespace} on node ${node} uses ${image}`,
    );
}

function usesDigest(template: PodTemplate | undefined, digest: string): boolean {
  return template !== undefined && imagesOf(template).some(({ image }) => namedDigest(image) === digest);
}

/** Returns the nodes that report the image, those of the same zone first. */
export function chooseSources(
  node: string,
  image: string,
  state: Pick<ClusterView, "node" | "nodes">,
): readonly string[] {
  const own = state.node(node);
  const zone = own && labelsOf(own)[ZONE];
  const far = (other: NodeEntry): number => Number(zone === undefined || labelsOf(other)[ZONE] !== zone);
  return state
    .nodes()
    .filter(({ name, health, report }) => {
      return name !== node && health.ready && (report?.report?.images.includes(image) ?? false);
    })
    .toSorted((a, b) => far(a) - far(b) || (a.name < b.name ? -1 : 1))
    .slice(0, SOURCES_MAX)
    .map(({ name }) => name);
}

/** Reports the progress of one transfer. Ends when the image has been stored. */
async function* relayed(
  transfer: Readonly<Record<"image" | "namespace" | "node" | "fromNode", string>>,
  { caller, signal }: SessionContext,
  options: FetchImageOptions,
): AsyncGenerator<FetchImageResponse> {
  const { image, namespace, fromNode } = transfer;
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  let passed = 0;
  const session = { caller, signal: either };
  const source = openOnNode(fromNode, { $case: "imageRead", value: { image, namespace } }, session, options);
  const relaying = relayImage(
    source,
    (description) => openTarget(transfer, description, session, options),
    (bytes) => {
      passed += bytes;
    },
  );
  // Its failure is thrown below, unless the caller has gone.
  relaying.catch(() => undefined);
  try {
    for (let told = -1; ; ) {
      if (passed !== told) yield { fromNode, passedBytes: BigInt(passed) };
      told = passed;
      if (await endsWithin(relaying, PROGRESS_MS, options.clock)) return;
    }
  } finally {
    over.abort();
  }
}

async function endsWithin(ending: Promise<void>, limitMs: number, clock: Clock): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const cancel = clock.schedule(limitMs, () => resolve(false));
  try {
    return await Promise.race([ending.then(() => true as const), late]);
  } finally {
    cancel();
  }
}
