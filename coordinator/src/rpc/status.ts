import { BadRequest } from "@forage/proto/google/rpc/error_details";
import { Status } from "@forage/proto/google/rpc/status";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { CoordinatorError, type CoordinatorErrorCode } from "../errors.ts";
import { StoreError, type StoreErrorCode } from "../store/index.ts";

/** The trailer in which gRPC clients expect google.rpc.Status. */
const DETAILS_KEY = "grpc-status-details-bin";
const BAD_REQUEST_TYPE = "type.googleapis.com/google.rpc.BadRequest";
/**
 * The size limit of the details. Clients accept 8 KiB of trailers, and some reject more only
 * sometimes. The details are sent in base64, which makes 6 KiB of this; further violations are
 * omitted.
 */
const MAX_DETAILS_BYTES = 4500;
/**
 * The length limit of a message in characters, and in bytes after it is escaped as a header value.
 */
const MAX_MESSAGE_LENGTH = 1500;
const MAX_ESCAPED_BYTES = 1800;
/**
 * The length limit of the message when it is repeated in the details, which leaves space for
 * violations.
 */
const MAX_REPEATED_LENGTH = 500;
const MAX_FIELD_LENGTH = 300;
const MAX_DESCRIPTION_LENGTH = 500;

const STATUS_OF: Readonly<Record<CoordinatorErrorCode, status>> = {
  INVALID: status.INVALID_ARGUMENT,
  NOT_FOUND: status.NOT_FOUND,
  ALREADY_EXISTS: status.ALREADY_EXISTS,
  CONFLICT: status.ABORTED,
  FAILED_PRECONDITION: status.FAILED_PRECONDITION,
  UNAUTHENTICATED: status.UNAUTHENTICATED,
  PERMISSION_DENIED: status.PERMISSION_DENIED,
  RESOURCE_EXHAUSTED: status.RESOURCE_EXHAUSTED,
  OUT_OF_RANGE: status.OUT_OF_RANGE,
  UNAVAILABLE: status.UNAVAILABLE,
  ABORTED: status.ABORTED,
  DEADLINE_EXCEEDED: status.DEADLINE_EXCEEDED,
  DATA_LOSS: status.DATA_LOSS,
  UNIMPLEMENTED: status.UNIMPLEMENTED,
  INTERNAL: status.INTERNAL,
};

/**
 * Converts a thrown value to a gRPC status. Unknown errors become INTERNAL without their text,
 * which may contain secrets.
 */
export function toServiceError(error: unknown): ServiceError {
  const known = toCoordinatorError(error);
  const code = STATUS_OF[known.code];
  const metadata = new Metadata();
  if (known.violations.length > 0) metadata.set(DETAILS_KEY, encodeDetails(code, known));
  const details = headerText(known.message);
  return Object.assign(new Error(details), { code, details, metadata });
}

/**
 * The messages for errors of the store. Codes that only a fault of the coordinator can cause are
 * omitted.
 */
const OF_STORE: Partial<Record<StoreErrorCode, readonly [CoordinatorErrorCode, string]>> = {
  OVERLOADED: ["UNAVAILABLE", "too many writes are waiting for the store; try again"],
  NO_SPACE: [
    "RESOURCE_EXHAUSTED",
    "the coordinator's disk is full: nothing can be changed until there is space",
  ],
  UNAVAILABLE: [
    "UNAVAILABLE",
    "the coordinator's store is unreachable: changes are refused until it answers",
  ],
  UNCONFIRMED: [
    "UNAVAILABLE",
    "the coordinator's store did not answer in time; whether the change was made is not known",
  ],
  IO_ERROR: ["UNAVAILABLE", "the coordinator's store failed; whether the change was made is not known"],
  LEAD_LOST: [
    "UNAVAILABLE",
    "another coordinator leads now, and the change may or may not have been made: check it, and try again",
  ],
  CLOSED: ["UNAVAILABLE", "the coordinator is stopping"],
};

function toCoordinatorError(error: unknown): CoordinatorError {
  if (error instanceof CoordinatorError) return error;
  const [code, message] = (error instanceof StoreError && OF_STORE[error.code]) || [
    "INTERNAL",
    "internal error; the coordinator's log has the details",
  ];
  return new CoordinatorError(code, message, { cause: error });
}

/** Encodes as many violations as fit, but at least one. */
function encodeDetails(code: status, error: CoordinatorError): Buffer {
  const fieldViolations = error.violations.map(({ field, description }) => {
    return {
      field: shorten(field, MAX_FIELD_LENGTH),
      description: shorten(description, MAX_DESCRIPTION_LENGTH),
    };
  });
  const encode = (count: number): Uint8Array => {
    const badRequest = BadRequest.fromPartial({ fieldViolations: fieldViolations.slice(0, count) });
    const details = [
      { typeUrl: BAD_REQUEST_TYPE, value: Buffer.from(BadRequest.encode(badRequest).finish()) },
    ];
    const message = shorten(error.message, MAX_REPEATED_LENGTH);
    return Status.encode(Status.fromPartial({ code, message, details })).finish();
  };
  let [fits, tooMany] = [1, fieldViolations.length + 1];
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if (encode(middle).length <= MAX_DETAILS_BYTES) fits = middle;
    else tooMany = middle;
  }
  return Buffer.from(encode(fits));
}

/** Shortens a text until its escaped form fits: one character can take twelve bytes. */
function headerText(text: string): string {
  let length = MAX_MESSAGE_LENGTH;
  while (encodeURI(shorten(text, length)).length > MAX_ESCAPED_BYTES) length = Math.floor(length * 0.8);
  return shorten(text, length);
}

/** Shortens a text without splitting a surrogate pair, which could not be encoded. */
function shorten(text: string, maxLength: number): string {
  const well = text.toWellFormed();
  return well.length <= maxLength ? well : `${well.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "")}…`;
}
