import type { GetDestination } from "@forage/proto/destination";
import { dependency } from "../endpoints/change-keys.ts";
import { Subscriber } from "../feed/subscriber.ts";
import { assertNamespace } from "../rpc/access.ts";
import type { CallContext } from "../rpc/caller.ts";
import type { Sink } from "../rpc/push.ts";
import { placeKey, placeOf } from "./client-place.ts";
import { readContextToken } from "./context-token.ts";
import type { Directory } from "./directory.ts";
import { endpointSubject } from "./endpoint-subject.ts";
import { parseServicePath } from "./path.ts";

export interface DestinationOptions {
  readonly directory: Directory;
  /**
   * Whether callers need a token. False for the plain-text listener, which accepts only connections
   * from this host.
   */
  readonly authorize: boolean;
}

/**
 * Streams the endpoints of one service port as encoded Updates: the complete set immediately, and
 * then each change.
 */
export function getDestination(
  request: GetDestination,
  { caller, method }: Omit<CallContext, "signal">,
  sink: Sink<Buffer>,
  { directory, authorize }: DestinationOptions,
): () => void {
  const { topics, state, domain } = directory;
  const path = parseServicePath(request.path, domain);
  if (authorize) assertNamespace(caller, method, path.namespace);
  const { node } = readContextToken(request.contextToken);
  let place = placeOf(state.node(node));
  let subject = endpointSubject(path, place, directory);
  const current = (): typeof subject => {
    const now = placeOf(state.node(node));
    if (placeKey(now) !== placeKey(place)) {
      place = now;
      subject = endpointSubject(path, place, directory);
    }
    return subject;
  };
  const alsoOn = node === "" ? {} : { alsoOn: dependency.node(node) };
  const reader = new Subscriber(topics, { subject: current, ...alsoOn }, sink);
  return () => reader.close();
}
