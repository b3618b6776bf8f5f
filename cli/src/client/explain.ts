import { BadRequest } from "@forage/proto/google/rpc/error_details";
import { Status } from "@forage/proto/google/rpc/status";
import { type ServiceError, status } from "@grpc/grpc-js";
import type { Endpoint } from "../config/settings.ts";
import { CliError, type CliErrorCode } from "../errors.ts";
import { explainClock, isOutOfTime } from "./explain-clock.ts";

export interface Violation {
  /** The path of the field, such as `resources[0].container_service.container.image`. */
  readonly field: string;
  readonly description: string;
}

/** An error that the coordinator returned, or that occurred on the way to it. */
export class CallError extends CliError {
  readonly status: status;
  readonly violations: readonly Violation[];
  /** Whether there was a connection on which the request may have been sent. */
  readonly connected: boolean;

  constructor(code: CliErrorCode, message: string, error: ServiceError) {
    super(code, message, { cause: error });
    this.status = error.code;
    this.violations = readViolations(error);
    this.connected = !/^(No connection established|Name resolution failed)/.test(error.details);
  }

  /** Whether a retry may help, because the answer was lost or the coordinator is restarting. */
  get passing(): boolean {
    const lost = this.status === status.UNAVAILABLE || this.status === status.ABORTED;
    return lost && this.code !== "UNTRUSTED";
  }
}

/**
 * Explains an error like `explain`, and also looks up the validity of certificates when clocks may
 * differ.
 */
export async function explainFully(
  error: unknown,
  endpoint: Endpoint,
  signal: AbortSignal,
  nowMs: () => number,
): Promise<unknown> {
  const explained = explain(error, endpoint, signal);
  if (!(explained instanceof CallError) || !isServiceError(error) || !isOutOfTime(error.details))
    return explained;
  return new CallError("UNTRUSTED", await explainClock(endpoint, nowMs()), error);
}

/**
 * Converts a failed call to an error with one line that states what to do. Errors other than those
 * of grpc-js are returned unchanged.
 */
export function explain(error: unknown, endpoint: Endpoint, signal?: AbortSignal): unknown {
  if (!isServiceError(error)) return error;
  if (signal?.aborted === true && error.code === status.CANCELLED) {
    return signal.reason instanceof CliError
      ? signal.reason
      : new CliError("INTERRUPTED", "interrupted", { cause: error });
  }
  const [code, message] = describe(error, endpoint);
  return new CallError(code, message, error);
}

function describe({ code, details }: ServiceError, endpoint: Endpoint): [CliErrorCode, string] {
  const { server, tokenSource } = endpoint;
  switch (code) {
    case status.UNAVAILABLE:
      return describeUnreachable(details, endpoint);
    case status.UNAUTHENTICATED:
      return ["UNAUTHENTICATED", `${server} does not accept the token from ${tokenSource}: ${details}`];
    case status.PERMISSION_DENIED:
      return ["DENIED", `not allowed: ${details}`];
    case status.DEADLINE_EXCEEDED:
      return ["TIMED_OUT", `${server} did not answer in time; --timeout gives it longer`];
    case status.NOT_FOUND:
      return ["NOT_FOUND", details];
    case status.UNIMPLEMENTED:
      return ["REFUSED", `${server} can't do this: ${details}`];
    case status.RESOURCE_EXHAUSTED:
      return ["REFUSED", `a limit is reached: ${details}`];
    default:
      return ["REFUSED", details];
  }
}

function describeUnreachable(details: string, { server, caFile }: Endpoint): [CliErrorCode, string] {
  const check = "is it running, and is that its gRPC address? (--server, FORAGE_SERVER)";
  if (/ECONNREFUSED/.test(details)) return ["UNREACHABLE", `nothing listens at ${server}: ${check}`];
  if (/Name resolution failed|ENOTFOUND|EAI_AGAIN/.test(details)) {
    return ["UNREACHABLE", `the name in ${server} is unknown: ${check}`];
  }
  if (/ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/.test(details))
    return ["UNREACHABLE", `no route to ${server}: ${check}`];
  if (/altnames|ERR_TLS_CERT_ALTNAME/.test(details)) {
    return [
      "UNTRUSTED",
      `the certificate at ${server} is for other names: ${afterLast(details, "altnames: ")}`,
    ];
  }
  if (/certificate|CERT_|SELF_SIGNED|UNABLE_TO/i.test(details)) {
    return [
      "UNTRUSTED",
      `${server} has no certificate from the CA in ${caFile}: use the CA file of this coordinator (--ca-file)`,
    ];
  }
  if (/wrong version number|ssl|EPROTO|alert|protocol/i.test(details)) {
    return ["UNREACHABLE", `${server} does not speak gRPC over TLS: ${check}`];
  }
  return ["UNREACHABLE", `no answer from ${server}: ${details}`];
}

function readViolations(error: ServiceError): readonly Violation[] {
  const [bytes] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (!Buffer.isBuffer(bytes)) return [];
  try {
    return Status.decode(bytes).details.flatMap(({ typeUrl, value }) =>
      typeUrl.endsWith("/google.rpc.BadRequest") ? BadRequest.decode(value).fieldViolations : [],
    );
  } catch {
    // Unreadable details are ignored, because the message is sufficient without them.
    return [];
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "details" in error && typeof error.details === "string";
}

function afterLast(text: string, mark: string): string {
  return text.slice(text.lastIndexOf(mark) + (text.includes(mark) ? mark.length : 1));
}
