import { Status } from "@forage/proto/google/rpc/status";
import { RecoverableError } from "@forage/proto/plugins/shared/structs/proto/recoverable_error";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { DriverError, type DriverErrorCode, TASK_NOT_FOUND } from "../driver-error.ts";

const DETAILS_KEY = "grpc-status-details-bin";
const RECOVERABLE_TYPE = "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError";
/** Peers accept 8 KiB of trailers. The message is sent twice, and escaping triples its length in the worst case. */
const MAX_MESSAGE_CHARACTERS = 1_500;

/**
 * The gRPC status of each code. Nomad reads UNAVAILABLE and CANCELLED as the death of the plugin, so only a
 * cancellation maps to one of them. Nomad decodes RecoverableError from FAILED_PRECONDITION only.
 */
const STATUS_OF: Readonly<Record<DriverErrorCode, status>> = {
  TASK_NOT_FOUND: status.UNKNOWN,
  INVALID: status.INVALID_ARGUMENT,
  ALREADY_EXISTS: status.ALREADY_EXISTS,
  FAILED_PRECONDITION: status.FAILED_PRECONDITION,
  UNIMPLEMENTED: status.UNIMPLEMENTED,
  CANCELLED: status.CANCELLED,
  INTERNAL: status.INTERNAL,
};

/** Returns the gRPC status of anything thrown. The text of an unknown error goes to the log only. */
export function toStatus(error: unknown): ServiceError {
  const known =
    error instanceof DriverError
      ? error
      : new DriverError("INTERNAL", "internal error of the driver; see the plugin's log in Nomad's log");
  const details = shorten(known.code === "TASK_NOT_FOUND" ? TASK_NOT_FOUND : known.message);
  const metadata = new Metadata();
  if (known.recoverable === undefined)
    return Object.assign(new Error(details), { code: STATUS_OF[known.code], details, metadata });
  const code = status.FAILED_PRECONDITION;
  const value = Buffer.from(RecoverableError.encode({ recoverable: known.recoverable }).finish());
  const encoded = Status.encode({ code, message: details, details: [{ typeUrl: RECOVERABLE_TYPE, value }] });
  metadata.set(DETAILS_KEY, Buffer.from(encoded.finish()));
  return Object.assign(new Error(details), { code, details, metadata });
}

function shorten(text: string): string {
  const well = text.toWellFormed();
  if (encodeURI(well).length <= MAX_MESSAGE_CHARACTERS) return well;
  let length = Math.min(well.length, MAX_MESSAGE_CHARACTERS);
  const cut = (): string => `${well.slice(0, length).replace(/[\ud800-\udbff]$/, "")}…`;
  while (encodeURI(cut()).length > MAX_MESSAGE_CHARACTERS) length = Math.floor(length * 0.8);
  return cut();
}
