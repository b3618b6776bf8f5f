import type {
  ImageDescription,
  RegistryCredential,
  ServeResponse,
  SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import type * as wire from "@forage/proto/forage/operator/v1/operator";
import type { OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import type { SessionBroker } from "../../link/session-broker.ts";
import { assertNamespace } from "../../rpc/access.ts";
import { type CallContext, callerName } from "../../rpc/caller.ts";
import type { Handlers } from "../../rpc/serve.ts";
import { Shares } from "../../rpc/shares.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PutOptions } from "../objects/put.ts";
import { notFound } from "../objects/remove.ts";
import { imageProblem } from "../validate/syntax/image.ts";
import { assertNamedDigest, relayImage } from "./relay-image.ts";
import { firstOf, outputOf, type PodSession, sendInput, startMissing } from "./sessions.ts";

export interface ImageOptions extends Pick<PutOptions, "vault"> {
  readonly state: ClusterView;
  readonly broker: SessionBroker;
}

export type ImageHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  "pushImage" | "prefetchImage" | "removeImage"
>;

/** The limit of concurrent pushes. Each keeps up to a MiB of its layers in memory. */
const PUSHES_MAX = 32;
const PUSHES_OF_CALLER_MAX = 8;
/** The limit of an image's description, which is one message to the agent. Manifests and configurations have a few KiB. */
const DESCRIPTION_MAX_BYTES = 1024 * 1024;
const PULL_SECRETS_MAX = 10;

/** Returns the handlers of calls for images on nodes, which need no registry. */
export function imageHandlers(options: ImageOptions): ImageHandlers {
  const slots = pushShares();
  return {
    pushImage: (requests, context) => pushImage(requests, context, options, slots),
    prefetchImage: (request, context) =>
      request.fromNode === ""
        ? prefetchImage(request, context, options)
        : copyImage(request, context, options, slots),
    removeImage: (request, context) => removeImage(request, context, options),
  };
}

async function* pushImage(
  requests: AsyncIterable<wire.PushImageRequest>,
  context: CallContext,
  options: ImageOptions,
  slots: Shares,
): AsyncGenerator<wire.PushImageResponse> {
  const incoming = requests[Symbol.asyncIterator]();
  const start = (await firstOf(incoming))?.frame;
  if (start?.$case !== "start") throw startMissing();
  const { node } = start.value;
  const sent = start.value.options;
  if (sent === undefined) throw new CoordinatorError("INVALID", "start.options must be set");
  // Only nodes may set `fromNode`, and send indexes, whose other entries are not verified here.
  const value = { ...sent, fromNode: false, indexes: [] };
  assertNamespace(context.caller, context.method, value.namespace || undefined);
  validateImage(value.image, "start.options.image");
  if (value.manifest.length + value.config.length > DESCRIPTION_MAX_BYTES)
    throw new CoordinatorError(
      "INVALID",
      `start.options: manifest and config are larger than ${DESCRIPTION_MAX_BYTES} bytes together`,
    );
  const release = slots.acquire(callerName(context.caller));
  try {
    const tunnel = openOnNode(node, { $case: "imagePush", value }, context, options);
    void sendInput(incoming, tunnel, layerData);
    for await (const frame of outputOf(tunnel))
      if (frame.$case === "imageMissing") yield { missingDigests: frame.value.digests };
  } finally {
    release();
  }
}

async function* prefetchImage(
  { node, namespace, image, pullSecrets }: wire.PrefetchImageRequest,
  context: CallContext,
  options: ImageOptions,
): AsyncGenerator<wire.PrefetchImageResponse> {
  if (namespace === "") throw new CoordinatorError("INVALID", "namespace must not be empty");
  validateImage(image, "image");
  if (pullSecrets.length > PULL_SECRETS_MAX)
    throw new CoordinatorError("INVALID", `pull_secrets has more than ${PULL_SECRETS_MAX} names`);
  const registryCredentials = pullSecrets.map((name) => credential(namespace, name, options));
  const value = { image, namespace, registryCredentials };
  const tunnel = openOnNode(node, { $case: "imagePull", value }, context, options);
  void tunnel.toAgent.push({ frame: { $case: "stdinClosed", value: true } });
  for await (const frame of outputOf(tunnel))
    if (frame.$case === "stdout") yield { message: frame.value.toString().trimEnd() };
}

/** Sends an image from one node to another. Both nodes verify it. */
async function* copyImage(
  { node, namespace, image, fromNode, pullSecrets }: wire.PrefetchImageRequest,
  context: CallContext,
  options: ImageOptions,
  slots: Shares,
): AsyncGenerator<wire.PrefetchImageResponse> {
  if (namespace === "") throw new CoordinatorError("INVALID", "namespace must not be empty");
  validateImage(image, "image");
  if (pullSecrets.length > 0)
    throw new CoordinatorError("INVALID", "pull_secrets are for registries: leave them out with from_node");
  if (node === fromNode) throw new CoordinatorError("INVALID", "from_node must be another node than node");
  const release = slots.acquire(callerName(context.caller));
  try {
    yield { message: `from node ${fromNode}` };
    const source = openOnNode(
      fromNode,
      { $case: "imageRead", value: { image, namespace } },
      context,
      options,
    );
    await relayImage(source, (description) =>
      openTarget({ image, namespace, node, fromNode }, description, context, options),
    );
  } finally {
    release();
  }
}

/** The part of a call's context that is needed to open sessions with nodes. */
export type SessionContext = Pick<CallContext, "signal" | "caller">;

/** Opens the session that stores an image, with the description from another node. */
export function openTarget(
  { image, namespace, node, fromNode }: Readonly<Record<"image" | "namespace" | "node" | "fromNode", string>>,
  description: ImageDescription,
  context: SessionContext,
  options: Pick<ImageOptions, "state" | "broker">,
): PodSession {
  const { manifest, config, indexes } = description;
  const bytes = [manifest, config, ...indexes].reduce((sum, { length }) => sum + length, 0);
  if (bytes > DESCRIPTION_MAX_BYTES)
    throw new CoordinatorError(
      "INVALID",
      `node ${fromNode}: manifest, config and indexes of ${image} are larger than ${DESCRIPTION_MAX_BYTES} bytes together`,
    );
  assertNamedDigest(image, description, fromNode);
  const value = { image, namespace, manifest, config, indexes, keepPresent: true, fromNode: true };
  return openOnNode(node, { $case: "imagePush", value }, context, options);
}

async function removeImage(
  { node, namespace, image }: wire.RemoveImageRequest,
  context: CallContext,
  options: ImageOptions,
): Promise<wire.RemoveImageResponse> {
  validateImage(image, "image");
  const tunnel = openOnNode(node, { $case: "imageRemove", value: { image, namespace } }, context, options);
  for await (const frame of outputOf(tunnel))
    if (frame.$case === "end") return { absent: frame.value.exitCode !== 0 };
  throw new CoordinatorError("UNAVAILABLE", `node ${node} ended the session without a result: try again`);
}

/**
 * Opens a session with a node without a pod. @throws CoordinatorError NOT_FOUND, or UNAVAILABLE if the node isn't
 * connected.
 */
export function openOnNode(
  node: string,
  kind: NonNullable<SessionRequest["kind"]>,
  { signal, caller }: SessionContext,
  { state, broker }: Pick<ImageOptions, "state" | "broker">,
): PodSession {
  if (state.node(node) === undefined) throw new CoordinatorError("NOT_FOUND", `there is no node "${node}"`);
  return {
    ...broker.open(node, { podUid: "", container: "", kind }, signal, callerName(caller)),
    endUse: () => {},
  };
}

function layerData({ frame }: wire.PushImageRequest): ServeResponse["frame"] {
  return frame?.$case === "data" ? { $case: "stdin", value: frame.value } : undefined;
}

function validateImage(image: string, field: string): void {
  const problem = imageProblem(image);
  if (problem !== undefined) throw new CoordinatorError("INVALID", `${field} ${problem}`);
}

/** Returns the credential, with the password, which is sent to the node only. */
function credential(namespace: string, name: string, { state, vault }: ImageOptions): RegistryCredential {
  const object = { namespace, kind: "registry_credential", name } as const;
  const stored = state.objects.version(object, state.objects.get(object)?.record.versions[0] ?? "");
  if (stored === undefined) throw notFound(object);
  const data = vault.open(object, stored);
  const text = (key: string): string => data[key]?.toString() ?? "";
  return { name, server: text("server"), username: text("username"), password: text("password") };
}

export function pushShares(): Shares {
  return new Shares({
    what: "concurrent pushes of images",
    total: PUSHES_MAX,
    ofUser: PUSHES_OF_CALLER_MAX,
  });
}
