import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BadRequest } from "@forage/proto/google/rpc/error_details";
import { Status } from "@forage/proto/google/rpc/status";
import { type ServiceError, status } from "@grpc/grpc-js";
import { CoordinatorError, type CoordinatorErrorCode, type FieldViolation } from "../errors.ts";
import { StoreError } from "../store/index.ts";
import { toServiceError } from "./status.ts";

const CODES: Readonly<Record<CoordinatorErrorCode, status>> = {
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

test("maps each code to its gRPC status", () => {
  for (const [code, expected] of Object.entries(CODES)) {
    const error = toServiceError(new CoordinatorError(code as CoordinatorErrorCode, "why"));
    assert.equal(error.code, expected, code);
    assert.equal(error.details, "why");
    assert.equal(detailsOf(error), undefined);
  }
});

test("turns unknown errors into INTERNAL without their text", () => {
  for (const thrown of [new Error("password=hunter2"), "password=hunter2", undefined]) {
    const error = toServiceError(thrown);
    assert.equal(error.code, status.INTERNAL);
    assert.doesNotMatch(error.details, /hunter2/);
  }
});

test("reports only those errors of the store on which callers can act", () => {
  for (const [code, expected] of [
    ["OVERLOADED", status.UNAVAILABLE],
    ["NO_SPACE", status.RESOURCE_EXHAUSTED],
    ["UNAVAILABLE", status.UNAVAILABLE],
    ["UNCONFIRMED", status.UNAVAILABLE],
    ["IO_ERROR", status.UNAVAILABLE],
    ["LEAD_LOST", status.UNAVAILABLE],
    ["CLOSED", status.UNAVAILABLE],
    ["CORRUPT", status.INTERNAL],
    ["INVALID_ARGUMENT", status.INTERNAL],
  ] as const) {
    const error = toServiceError(new StoreError(code, "/var/lib/forage/store: secret place"));
    assert.equal(error.code, expected, code);
    assert.doesNotMatch(error.details, /secret/);
  }
});

test("names the loss of the lead, and not the disk, as the reason of a failed write", () => {
  const { details } = toServiceError(new StoreError("LEAD_LOST", "host-b leads"));
  assert.match(details, /^another coordinator leads now, and the change may or may not have been made/);
});

test("encodes violations as google.rpc.BadRequest", () => {
  const violations = [{ field: "a.b[0]", description: "must be c" }];
  const error = toServiceError(new CoordinatorError("INVALID", "the request is invalid", { violations }));
  assert.deepEqual(detailsOf(error), {
    code: status.INVALID_ARGUMENT,
    message: "the request is invalid",
    violations,
  });
});

describe("limits the trailers of every error to 8 KiB", () => {
  const path = "resources[0].container_service.container.env[17].name";
  for (const [what, message, violations] of [
    ["200 violations", "m", list(200, path, "must be letters, digits, '_', '-' and '.'")],
    ["a long message", "x".repeat(5000), list(1, path, "y")],
    ["a message of 1,499 letters and an emoji", `${"x".repeat(1499)}😀`, []],
    ["a message of emoji only", "😀".repeat(1500), list(200, path, "😀".repeat(300))],
    ["half an emoji", "\ud83d", list(1, "\ud83d", "\ude00")],
    ["a message of spaces and line breaks", " \n".repeat(1500), list(50, path, "z")],
    ["one violation of a megabyte", "m", list(1, "f".repeat(500_000), "d".repeat(500_000))],
  ] as const) {
    test(what, () => {
      const error = toServiceError(new CoordinatorError("INVALID", message, { violations }));
      assert.ok(error.details.length <= 1501);
      assert.ok(trailerBytes(error) <= 8192, `${trailerBytes(error)} bytes`);
      const details = detailsOf(error);
      if (violations.length === 0) return;
      assert.ok(details !== undefined && details.violations.length >= 1);
    });
  }
});

test("contains as many violations as fit, in their order", () => {
  const violations = list(200, "resources[0].service.ports[7].name", "must be set when there are several");
  const details = detailsOf(toServiceError(new CoordinatorError("INVALID", "m", { violations })));
  const count = details?.violations.length ?? 0;
  assert.ok(count >= 40 && count < 200, `${count}`);
  assert.deepEqual(details?.violations, violations.slice(0, count));
});

test("fills the details up to their limit of 4,500 bytes", () => {
  const sizes = Array.from({ length: 400 }, (_, length) => {
    const violations = Array.from({ length: 12 }, (__, index) => {
      return { field: `f${index}`, description: "d".repeat(400 + (index === 0 ? Math.min(length, 99) : 0)) };
    });
    const message = "m".repeat(100 + Math.max(0, length - 99));
    const { metadata } = toServiceError(new CoordinatorError("INVALID", message, { violations }));
    return Buffer.from(metadata.get("grpc-status-details-bin")[0] ?? "").length;
  });
  assert.equal(Math.max(...sizes), 4_500);
});

function list(count: number, field: string, description: string): FieldViolation[] {
  return Array.from({ length: count }, () => ({ field, description }));
}

function detailsOf({ metadata }: ServiceError) {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (bytes === undefined) return undefined;
  const { code, message, details } = Status.decode(bytes as Buffer);
  const value = details[0]?.value ?? new Uint8Array();
  return {
    code,
    message,
    violations: BadRequest.decode(value).fieldViolations.map(({ field, description }) => ({
      field,
      description,
    })),
  };
}

/** Returns the size as HTTP/2 counts it: names, values and 32 bytes for each header. */
function trailerBytes({ code, details, metadata }: ServiceError): number {
  const bin = metadata.get("grpc-status-details-bin")[0] as Buffer | undefined;
  const headers = [
    ["grpc-status", String(code)],
    ["grpc-message", encodeURI(details)],
    ["grpc-status-details-bin", bin?.toString("base64") ?? ""],
    ["content-type", "application/grpc+proto"],
    [":status", "200"],
    ["date", "Sat, 21 Nov 2026 11:00:00 GMT"],
  ];
  return headers.reduce((sum, [name = "", value = ""]) => sum + name.length + value.length + 32, 0);
}
