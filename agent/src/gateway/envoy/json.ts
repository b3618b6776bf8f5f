import { createHash } from "node:crypto";

/** A part of Envoy's configuration. It is serialized with JSON.stringify only, so that user text never becomes structure. */
export type Json = string | number | boolean | readonly Json[] | { readonly [key: string]: Json | undefined };

export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** A message whose type Envoy can't know from where it stands. `type` is without the leading `envoy.`. */
export function typed(type: string, fields: JsonObject): JsonObject {
  return { "@type": `type.googleapis.com/envoy.${type}`, ...fields };
}

/** A file of Envoy's file-based discovery. Its version is the hash of its content, which identifies the applied one. */
export interface ResourceFile {
  readonly version: string;
  readonly text: string;
}

export function resourceFile(resources: readonly JsonObject[]): ResourceFile {
  const text = JSON.stringify(resources);
  const version = shortHash(text);
  // As JSON.stringify would have it, without making all of it twice.
  return { version, text: `{"version_info":${JSON.stringify(version)},"resources":${text}}` };
}

/** Letters and digits; for names of files, and to tell contents apart. */
export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 20);
}
