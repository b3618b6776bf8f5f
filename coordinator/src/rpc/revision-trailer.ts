import { Metadata } from "@grpc/grpc-js";
import { methodTable } from "./access.ts";
import { FORWARDED_PEER_KEY } from "./forwarded-caller.ts";

/**
 * The trailer with the store's revision after a call that may have written. It is sent to the
 * coordinator that passed the call on.
 */
export const REVISION_KEY = "forage-revision";

/** Returns the trailers of a call that another coordinator passed on and that may have written. */
export function revisionTrailer(
  method: string,
  metadata: Metadata,
  revision: (() => number) | undefined,
): Metadata | undefined {
  if (revision === undefined || !mayWrite(method) || metadata.get(FORWARDED_PEER_KEY).length === 0)
    return undefined;
  const trailer = new Metadata();
  trailer.set(REVISION_KEY, String(revision()));
  return trailer;
}

/** Removes the revision from the trailers and returns it; undefined if there is none. */
export function takeRevision(trailer: Metadata | undefined): number | undefined {
  const value = Number(trailer?.get(REVISION_KEY)[0] ?? Number.NaN);
  trailer?.remove(REVISION_KEY);
  return Number.isSafeInteger(value) ? value : undefined;
}

function mayWrite(method: string): boolean {
  const access = methodTable[method];
  return access !== undefined && (access.who !== "user" || WRITERS.has(access.role));
}

const WRITERS: ReadonlySet<string> = new Set(["editor", "admin"]);
