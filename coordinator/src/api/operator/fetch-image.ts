import { messageOf } from "@forage/common/message-of";
import type { FetchImageRequest, FetchImageResponse, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { CoordinatorError } from "../../errors.ts";
import type { Prefetches } from "../../link/prefetches.ts";
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
  readonly prefetches: Pick<Prefetches, "imagesFor">;
}

/** The limit of tried sources. A failed source has at most read what it has sent. */
const SOURCES_MAX = 3;
const PROGRESS_MS = 2_000;
const ZONE = "topology.kubernetes.io/zone";

/**
 * Returns the handler by which a node gets an image from another node. The sending node checks the rights of the namespace.
 */
export function fetchImageHandler(
  options: FetchImageOptions,
): (request: FetchImageRequest, context: CallContext) => AsyncGenerator<FetchImageResponse> {
  const slots = pushShares();
  return async function* ({ image, namespace, tagSources }, { caller, signal }) {
    if (caller.type !== "node")
      throw new CoordinatorError("PERMISSION_DENIED", "only nodes can fetch images");
    const node = caller.nodeId;
    const digest = namedDigest(image);
    if (digest === undefined && tagSources.length === 0)
      throw new CoordinatorError("INVALID", "image: a name without a digest requires tag_sources");
    assertMayFetch(node, image, namespace, options);
    const sources = chooseSources(node, image, options.state, digest === undefined ? tagSources : undefined);
    if (sources.length === 0) {
      const which = digest === undefined ? "no connected node of images.tagsFrom" : "no other connected node";
      throw new CoordinatorError("NOT_FOUND", `${which} has the image`);
    }
    const release = slots.acquire(`node ${node}`);
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

/**
 * Checks that a node needs the image for its pods of the namespace, or pulls it ahead of them. @throws CoordinatorError
 * PERMISSION_DENIED.
 */
function assertMayFetch(
  node: string,
  image: string,
  namespace: string,
  { state, prefetches }: Pick<FetchImageOptions, "state" | "prefetches">,
): void {
  const isUsed = state
    .podsOnNode(node)
    .some(({ record: { namespace: own, template } }) => own === namespace && uses(template, image));
  const isAhead = prefetches.imagesFor(node, namespace).some((asked) => isSame(asked, image));
  if (!isUsed && !isAhead)
    throw new CoordinatorError(
      "PERMISSION_DENIED",
      `no pod of the namespace ${namespace} on node ${node} uses ${image}`,
    );
}

function uses(template: PodTemplate | undefined, image: string): boolean {
  return template !== undefined && imagesOf(template).some((use) => isSame(use.image, image));
}

/**
 * Reports whether an image name in a manifest means the same as a full name: by digest, or after Docker's rules have
 * completed the shorter one.
 */
function isSame(named: string, full: string): boolean {
  const digest = namedDigest(full);
  if (digest !== undefined) return namedDigest(named) === digest;
  const tagged = named.slice(named.lastIndexOf("/") + 1).includes(":") ? named : `${named}:latest`;
  return [tagged, `docker.io/${tagged}`, `docker.io/library/${tagged}`].includes(full);
}

/**
 * Returns the nodes that report the image, those of the same zone first. If `trusted` is set, only nodes with these names.
 */
export function chooseSources(
  node: string,
  image: string,
  state: Pick<ClusterView, "node" | "nodes">,
  trusted?: readonly string[],
): readonly string[] {
  const own = state.node(node);
  const zone = own && labelsOf(own)[ZONE];
  const far = (other: NodeEntry): number => Number(zone === undefined || labelsOf(other)[ZONE] !== zone);
  return state
    .nodes()
    .filter(({ name, health, report }) => {
      if (trusted !== undefined && !trusted.includes(name)) return false;
      return name !== node && health.ready && (report?.report?.images.includes(image) ?? false);
    })
    .toSorted((a, b) => far(a) - far(b) || (a.name < b.name ? -1 : 1))
    .slice(0, SOURCES_MAX)
    .map(({ name }) => name);
}

/** Yields the progress of one transfer. Ends when the image is stored. */
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
  // The error is thrown below, unless the caller has left.
  relaying.catch(() => undefined);
  try {
    for (let sent = -1; ; ) {
      if (passed !== sent) yield { fromNode, passedBytes: BigInt(passed) };
      sent = passed;
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
