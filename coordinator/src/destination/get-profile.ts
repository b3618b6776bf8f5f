import { DestinationProfile, type GetDestination } from "@forage/proto/destination";
import { CoordinatorError } from "../errors.ts";
import { Subscriber } from "../feed/subscriber.ts";
import { assertNamespace } from "../rpc/access.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { Sink } from "../rpc/push.ts";
import { readContextToken } from "./context-token.ts";
import type { DestinationOptions } from "./get.ts";
import { parseProfilePath } from "./path.ts";
import { type PublishedProfile, profileSubject } from "./profile/profile-subject.ts";
import { unknownProfile } from "./profile/service-profile.ts";

type Context = Omit<CallContext, "signal">;

/**
 * Streams the encoded DestinationProfiles of a destination: one immediately, and another after each
 * change.
 */
export function getProfile(
  request: GetDestination,
  context: Context,
  sink: Sink<Buffer>,
  { directory, authorize }: DestinationOptions,
): () => void {
  const path = parseProfilePath(request.path, directory.domain);
  if (authorize && path.type === "service") assertNamespace(context.caller, context.method, path.namespace);
  const { node } = readContextToken(request.contextToken);
  const subject = () => profileSubject(path, node, directory);
  // The owner of an address is known only now, and can change. Addresses of other namespaces count
  // as unknown.
  const instead = ({ namespace }: PublishedProfile): readonly Buffer[] | undefined =>
    namespace === undefined || !authorize || mayRead(context, namespace) ? undefined : [nothingKnown()];
  const reader = new Subscriber(directory.topics, { subject, instead }, sink);
  return () => reader.close();
}

function nothingKnown(): Buffer {
  return Buffer.from(DestinationProfile.encode(unknownProfile).finish());
}

function mayRead({ caller, method }: Context, namespace: string): boolean {
  try {
    assertNamespace(caller, method, namespace);
    return true;
  } catch (error) {
    if (error instanceof CoordinatorError) return false;
    throw error;
  }
}
