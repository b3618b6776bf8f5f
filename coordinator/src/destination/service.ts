import { DestinationService } from "@forage/proto/destination";
import type { Handlers } from "../rpc/serve.ts";
import { type DestinationOptions, getDestination } from "./get.ts";
import { getProfile } from "./get-profile.ts";

/** Linkerd's service, of which the answers are encoded already: all streams of a topic share the bytes. */
export const SharedDestinationService = {
  get: { ...DestinationService.get, responseSerialize: asIs, responseDeserialize: asIs },
  getProfile: { ...DestinationService.getProfile, responseSerialize: asIs, responseDeserialize: asIs },
} as const;

export function destinationService(options: DestinationOptions): Handlers<typeof SharedDestinationService> {
  return {
    get: (request, context) => getDestination(request, context, options),
    getProfile: (request, context) => getProfile(request, context, options),
  };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
