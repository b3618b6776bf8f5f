import assert from "node:assert/strict";
import { test } from "node:test";
import { Status } from "@forage/proto/google/rpc/status";
import { RecoverableError } from "@forage/proto/plugins/shared/structs/proto/recoverable_error";
import { status } from "@grpc/grpc-js";
import { DriverError, taskNotFound } from "../driver-error.ts";
import { toStatus } from "./to-status.ts";

test("an unknown task is UNKNOWN with the text that Nomad compares", () => {
  const { code, details } = toStatus(taskNotFound());
  assert.deepEqual({ code, details }, { code: status.UNKNOWN, details: "task not found for given id" });
});

test("a recoverable error is FAILED_PRECONDITION with Nomad's detail", () => {
  for (const recoverable of [true, false]) {
    const error = new DriverError("INTERNAL", "the registry is away", { recoverable });
    const { code, details, metadata } = toStatus(error);
    assert.deepEqual(
      { code, details },
      { code: status.FAILED_PRECONDITION, details: "the registry is away" },
    );
    const [bytes] = metadata.get("grpc-status-details-bin");
    const decoded = Status.decode(Buffer.from(bytes ?? ""));
    assert.equal(decoded.code, status.FAILED_PRECONDITION);
    assert.equal(
      decoded.details[0]?.typeUrl,
      "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError",
    );
    assert.deepEqual(RecoverableError.decode(decoded.details[0]?.value ?? new Uint8Array()), { recoverable });
  }
});

test("only the caller's own cancellation has a status that Nomad reads as the plugin's death", () => {
  const codes = [
    "TASK_NOT_FOUND",
    "INVALID",
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "UNIMPLEMENTED",
    "INTERNAL",
  ];
  const dead: readonly number[] = [status.UNAVAILABLE, status.CANCELLED];
  for (const code of codes as readonly ConstructorParameters<typeof DriverError>[0][])
    assert.ok(!dead.includes(toStatus(new DriverError(code, "x")).code), code);
});

test("the response does not contain the text of an unexpected error", () => {
  assert.doesNotMatch(toStatus(new Error("password hunter2")).details, /hunter2/);
});

test("truncates and repairs messages to fit into a trailer", () => {
  for (const text of ["\u{1f332}".repeat(5_000), "é".repeat(4_000), "x".repeat(10_000), "\ud83c"]) {
    const { details } = toStatus(new DriverError("INVALID", text));
    assert.ok(encodeURI(details).length <= 1_510, String(encodeURI(details).length));
  }
});
