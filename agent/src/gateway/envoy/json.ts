import { createHash } from "node:crypto";

/** A part of Envoy's configuration. It is serialized with JSON.stringify only, so that user text never becomes structure. */
export type Json = string | number | boolean | readonly Json[] | { readonly [key: string]: Json | undefined };

export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/**
 * Returns a message with an explicit type, for places where Envoy can't infer it. `type` omits the leading `envoy.`.
 */
export function typed(type: string, fields: JsonObject): JsonObject {
  return { "@type": `type.googleapis.com/envoy.${type}`, ...fields };
}

/** A file of Envoy's file-based discovery. Its version is the hash of its content and identifies the applied file. */
export interface ResourceFile {
  readonly version: string;
  readonly text: string;
}

export function resourceFile(resources: readonly JsonObject[]): ResourceFile {
  const text = JSON.stringify(resources);
  const version = shortHash(text);
  // The same text as from JSON.stringify, without serializing the resources twice.
  return { version, text: `{"version_info":${JSON.stringify(version)},"resources":${text}}` };
}

/** Returns a digest of letters and digits, for file names and to compare contents. */
export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 20);
}
