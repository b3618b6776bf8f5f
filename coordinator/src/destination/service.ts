import { DestinationService } from "@forage/proto/destination";
import { type PushedMethod, pushedMethod } from "../rpc/push-server/pushed-method.ts";
import type { Handlers } from "../rpc/serve.ts";
import { type DestinationOptions, getDestination } from "./get.ts";
import { getProfile } from "./get-profile.ts";

/**
 * The definition of Linkerd's service with encoded responses: all streams of a topic share the
 * bytes.
 */
export const SharedDestinationService = {
  get: { ...DestinationService.get, responseSerialize: asIs, responseDeserialize: asIs },
  getProfile: { ...DestinationService.getProfile, responseSerialize: asIs, responseDeserialize: asIs },
} as const;

export function destinationService(options: DestinationOptions): Handlers<typeof SharedDestinationService> {
  return {
    get: { push: (request, context, sink) => getDestination(request, context, sink, options) },
    getProfile: { push: (request, context, sink) => getProfile(request, context, sink, options) },
  };
}

/** Returns the same service for the push server. */
export function destinationMethods(options: DestinationOptions): readonly PushedMethod[] {
  const { get, getProfile: profile } = SharedDestinationService;
  return [
    pushedMethod(get, { push: (request, context, sink) => getDestination(request, context, sink, options) }),
    pushedMethod(profile, { push: (request, context, sink) => getProfile(request, context, sink, options) }),
  ];
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
