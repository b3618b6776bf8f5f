import type { Metadata, StatusObject } from "@grpc/grpc-js";
import { encodeFields } from "../../http2/hpack/encode-fields.ts";
import type { Field } from "../../http2/hpack/static-table.ts";
import type { RequestHead } from "../../http2/request-head.ts";
import { toServiceError } from "../status.ts";

const GRPC = "application/grpc";
const RESPONSE: readonly Field[] = [
  [":status", "200"],
  ["content-type", GRPC],
];

/** The header block at the start of each response. */
export const RESPONSE_HEAD: Buffer = encodeFields(RESPONSE);
/** The header block that ends a response with OK. */
export const OK_TRAILERS: Buffer = encodeFields([["grpc-status", "0"]]);

const NANOSECONDS_PER_UNIT: ReadonlyMap<string, number> = new Map([
  ["H", 3_600e9],
  ["M", 60e9],
  ["S", 1e9],
  ["m", 1e6],
  ["u", 1e3],
  ["n", 1],
]);
/** The longest delay of a timer, in milliseconds. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Returns the HTTP status for a request that is not a gRPC call; undefined for a gRPC call. */
export function httpRefusal({ method, fields }: RequestHead): string | undefined {
  if (method !== "POST") return "405";
  const type = fields.get("content-type") ?? "";
  return type === GRPC || type.startsWith(`${GRPC}+`) || type.startsWith(`${GRPC};`) ? undefined : "415";
}

/**
 * Returns the call's time limit in milliseconds; undefined if it has none, and NaN if the header
 * can't be parsed.
 */
export function timeoutMsOf({ fields }: RequestHead): number | undefined {
  const text = fields.get("grpc-timeout");
  if (text === undefined) return undefined;
  const [, digits = "", unit = ""] = /^([0-9]{1,8})([HMSmun])$/.exec(text) ?? [];
  const nanoseconds = Number(digits || Number.NaN) * (NANOSECONDS_PER_UNIT.get(unit) ?? Number.NaN);
  return Math.min(Math.ceil(nanoseconds / 1e6), MAX_TIMEOUT_MS);
}

/** Encodes the header block at the start of a response with the given metadata. */
export function responseHead(metadata?: Metadata): Buffer {
  const fields = metadata === undefined ? [] : fieldsOf(metadata);
  return fields.length === 0 ? RESPONSE_HEAD : encodeFields([...RESPONSE, ...fields]);
}

/**
 * Encodes the end of a call with the error's status. `isFirst` means that no part of the response
 * was sent before.
 */
export function errorTrailers(error: unknown, isFirst: boolean): Buffer {
  return trailers(toServiceError(error), isFirst);
}

/** Encodes the end of a call with a status. `isFirst` has the same meaning. */
export function trailers(
  { code, details, metadata }: Pick<StatusObject, "code" | "details" | "metadata">,
  isFirst: boolean,
): Buffer {
  const fields: Field[] = [["grpc-status", String(code)]];
  if (details !== "") fields.push(["grpc-message", encodeURI(details.toWellFormed())]);
  fields.push(...fieldsOf(metadata));
  return encodeFields(isFirst ? [...RESPONSE, ...fields] : fields);
}

function fieldsOf(metadata: Metadata): Field[] {
  return Object.entries(metadata.toHttp2Headers()).flatMap(([name, values]) =>
    [values ?? []].flat().map((value): Field => [name, String(value)]),
  );
}

/** Encodes a response that consists of an HTTP status only. */
export function httpStatus(status: string): Buffer {
  return encodeFields([[":status", status]]);
}
