import type { AuditFields } from "@forage/common/audit-chain";
import { addressGroup } from "@forage/identity/tls-server";
import { status } from "@grpc/grpc-js";
import type { AuditLog } from "../audit/audit-log.ts";
import { RefusalLimit } from "../audit/refusal-limit.ts";
import { methodTable } from "./access.ts";
import { type Caller, callerName } from "./caller.ts";

export interface CallAuditOptions {
  readonly log: Pick<AuditLog, "append" | "close">;
  readonly monotonicMs: () => number;
}

/** Records one call while it is in progress. */
export interface AuditedCall {
  /** Records the caller once it is identified. */
  identified(caller: Caller): void;
  /** Records the request, or the first message of a stream of requests. */
  requested(request: unknown): void;
  /** Records that a message of the stream was refused while the stream continues. */
  messageRefused(why: string): void;
  ended(code: number, message?: string): void;
}

const PATH = /^\/([^/]+)\/([^/]+)$/;
/**
 * Methods that need an editor's role and that are not recorded: programs call them constantly, and
 * they change nothing that runs.
 */
const FREQUENT: ReadonlySet<string> = new Set([
  "/forage.operator.v1.OperatorService/PutMetric",
  "/wsman.WorkspaceManager/MarkActive",
]);
/**
 * Methods without an editor's role that are recorded: they enroll nodes and coordinators, or reveal
 * what containers print.
 */
const FURTHER: ReadonlySet<string> = new Set([
  "/forage.agent.v1.EnrollmentService/Join",
  "/forage.coordinator.v1.CoordinatorEnrollmentService/Join",
  "/forage.agent.v1.AgentService/Renew",
  "/forage.operator.v1.OperatorService/Logs",
]);
const CHANGING_ROLES: ReadonlySet<string> = new Set(["editor", "admin"]);
const REFUSED: ReadonlySet<number> = new Set([status.UNAUTHENTICATED, status.PERMISSION_DENIED]);
const MESSAGE_REFUSED = "PERMISSION_DENIED";

/** Fields of requests that name objects. None of them contains a secret's value. */
const NAMING = [
  ...["namespace", "kind", "name", "pod", "container", "node", "nodeName", "service", "target"],
  ...["id", "rolloutId", "applyId", "cronJob", "hostname", "role", "tokenId", "description", "port"],
];
const MAX_VALUE_LENGTH = 253;
const MAX_MESSAGE_LENGTH = 300;
const MAX_RESOURCES = 10;

/**
 * Records caller, method and result of calls that change or reveal something, and of refused calls.
 */
export class CallAudit {
  readonly #options: CallAuditOptions;
  readonly #refusals = new RefusalLimit();
  readonly #trail: Trail = {
    append: (fields) => this.#options.log.append(fields),
    refused: (fields) => this.#refused(fields),
  };

  constructor(options: CallAuditOptions) {
    this.#options = options;
  }

  /** Records the start of the coordinator. */
  started(): void {
    this.#options.log.append({ event: "coordinator-started" });
  }

  /** Writes pending records. Later calls are not recorded. */
  close(): Promise<void> {
    return this.#options.log.close();
  }

  /**
   * Starts the record of a call. With `isStream`, the start is recorded too, because the call may
   * last for hours.
   */
  begin(method: string, peer: string, isStream: boolean): AuditedCall {
    return new CallRecord({ method, peer }, isStream, this.#trail);
  }

  /** Records a call that was refused before its request was read. */
  refused(method: string, peer: string, code: number, message: string): void {
    if (!REFUSED.has(code)) return;
    this.#refused({
      method: known(method),
      peer,
      result: status[code] ?? String(code),
      ...shortened(message),
    });
  }

  #refused(fields: Omit<AuditFields, "event">): void {
    const { log, monotonicMs } = this.#options;
    const { peer = "", caller = "" } = fields;
    const key = caller === "" ? addressGroup(peer.slice(0, peer.lastIndexOf(":"))) : caller;
    for (const entry of this.#refusals.note(key, { event: "refused", ...fields }, monotonicMs()))
      log.append(entry);
  }
}

/** The receivers of the records of calls. */
interface Trail {
  readonly append: (fields: AuditFields) => void;
  /** Appends the record of a refused call, unless there are too many. */
  readonly refused: (fields: Omit<AuditFields, "event">) => void;
}

/** The record of one call. Thousands of streams keep theirs, so it has no closures. */
class CallRecord implements AuditedCall {
  readonly #entry: { method: string; peer: string; caller?: string; target?: Record<string, string> };
  readonly #isStream: boolean;
  readonly #trail: Trail;

  constructor(entry: { method: string; peer: string }, isStream: boolean, trail: Trail) {
    this.#entry = entry;
    this.#isStream = isStream;
    this.#trail = trail;
  }

  identified(caller: Caller): void {
    this.#entry.caller = nameOf(caller);
  }

  requested(request: unknown): void {
    this.#entry.target = targetOf(request);
    if (this.#isStream && this.#isRecorded) this.#trail.append({ event: "stream-opened", ...this.#entry });
  }

  messageRefused(why: string): void {
    this.#trail.refused({ ...this.#entry, result: MESSAGE_REFUSED, ...shortened(why) });
  }

  ended(code: number, message?: string): void {
    const result = status[code] ?? String(code);
    const fields = { ...this.#entry, result, ...(message && shortened(message)) };
    if (REFUSED.has(code)) this.#trail.refused(fields);
    else if (this.#isRecorded) this.#trail.append({ event: "call", ...fields });
  }

  get #isRecorded(): boolean {
    return isRecordedMethod(this.#entry.method);
  }
}

function isRecordedMethod(method: string): boolean {
  const access = methodTable[method];
  if (access === undefined || FREQUENT.has(method)) return false;
  return FURTHER.has(method) || (access.who === "user" && CHANGING_ROLES.has(access.role));
}

/** Returns the method's name, shortened if no service has it: a client can send any path. */
function known(method: string): string {
  return methodTable[method] !== undefined ? method : PATH.test(method) ? "unknown" : "malformed";
}

function nameOf(caller: Caller): string {
  if (caller.type !== "anonymous") return callerName(caller);
  const node = caller.expiredNode?.nodeId ?? caller.refusedNode;
  return node === undefined ? "" : `node ${node} (certificate not accepted)`;
}

function shortened(message: string): { readonly message: string } {
  return { message: message.slice(0, MAX_MESSAGE_LENGTH) };
}

function targetOf(request: unknown): Record<string, string> {
  const fields = flattened(request);
  const target: Record<string, string> = {};
  for (const name of NAMING) {
    const value = fields[name];
    if ((typeof value === "string" && value !== "") || (typeof value === "number" && value !== 0))
      target[name] = String(value).slice(0, MAX_VALUE_LENGTH);
  }
  const { resources } = fields;
  if (Array.isArray(resources)) target.resources = namesOf(resources);
  return target;
}

/** Returns the fields of a request and those of the message in it that describes the object. */
function flattened(request: unknown): Readonly<Record<string, unknown>> {
  const fields = asRecord(request);
  const subjects = ["bundle", "object", "policy"].map((name) => asRecord(fields[name]));
  // The first message of a stream has its fields in a frame.
  const frames = [fields.frame, fields.message].map((it) => asRecord(asRecord(it).value));
  const kind = asRecord(asRecord(fields.object).spec).$case;
  return Object.assign({ kind }, ...frames, ...subjects, fields);
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function namesOf(resources: readonly unknown[]): string {
  const names = resources.slice(0, MAX_RESOURCES).map((it) => String(asRecord(it).name ?? "").slice(0, 63));
  const more = resources.length - names.length;
  return more > 0 ? `${names.join(",")} and ${more} more` : names.join(",");
}
