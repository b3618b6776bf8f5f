import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { CoordinatorError } from "../errors.ts";
import { type Bound, bodyOf, contextFor } from "../http/api/call.ts";
import { assertMayCall } from "../rpc/access.ts";
import type { CallContext } from "../rpc/caller.ts";
import { toServiceError } from "../rpc/status.ts";
import { answering, limitBody } from "./answer.ts";
import { chunkStream } from "./chunk-stream.ts";
import { BASE_PATH, identified } from "./guard.ts";
import type { OperatorHandlers } from "./handlers.ts";
import type { DashboardSessions } from "./sessions.ts";
import type { Streams } from "./streams.ts";
import { type TerminalInput, Terminals } from "./terminals.ts";

export interface SessionRouteOptions {
  readonly sessions: DashboardSessions;
  readonly streams: Streams;
  readonly handlers: OperatorHandlers;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly observe: (method: string, code: number, seconds: number) => void;
}

const STREAM_HEADERS = {
  "content-type": "application/octet-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};
const TAIL_LINES = 1_000;
const MAX_TAIL_LINES = 100_000;
/** The size limit of one input: more than a person types or pastes at once. */
const MAX_INPUT_BYTES = 64 * 1024;
const MAX_START_BYTES = 4_096;
const MAX_TERMINAL_SIDE = 1_000;
const encoder = new TextEncoder();

/** Adds the streams of pod logs and terminals, with the same checks as for gRPC clients. */
export function addSessionRoutes(app: Hono<{ Bindings: HttpBindings }>, options: SessionRouteOptions): void {
  const terminals = new Terminals(options.randomBytes);
  app.get(
    `${BASE_PATH}/api/logs`,
    answering(async (c) => logs(c, options)),
  );
  app.post(
    `${BASE_PATH}/api/terminals`,
    limitBody(MAX_START_BYTES),
    answering((c) => terminal(c, terminals, options)),
  );
  app.post(
    `${BASE_PATH}/api/terminals/:id`,
    limitBody(2 * MAX_INPUT_BYTES),
    answering(async (c) => {
      const { session } = identified(c, options.sessions);
      const input = inputOf((await bodyOf(c)) as Record<string, unknown>);
      await terminals.write(c.req.param("id") ?? "", session, input);
      return c.json({});
    }),
  );
}

function logs(c: Bound, options: SessionRouteOptions): Response {
  const who = identified(c, options.sessions);
  const tail = Number(c.req.query("tail") ?? TAIL_LINES);
  const request = {
    ...target((name) => c.req.query(name)),
    options: {
      follow: c.req.query("follow") === "true",
      tailLines: Number.isInteger(tail) && tail >= 0 ? Math.min(tail, MAX_TAIL_LINES) : TAIL_LINES,
      previous: c.req.query("previous") === "true",
      timestamps: c.req.query("timestamps") === "true",
      since: undefined,
      stream: "",
    },
  };
  const context = contextFor(c, "logs", who.caller);
  assertMayCall(context.caller, context.method, request);
  const { signal, end } = options.streams.begin(who, context.signal);
  const handler = options.handlers.logs as Streaming<typeof request, { readonly data: Uint8Array }>;
  const chunks = mapped(handler(request, { ...context, signal }), ({ data }) => data);
  const failure = (error: unknown): Uint8Array => encoder.encode(`\n[${toServiceError(error).details}]\n`);
  return c.body(chunkStream(chunks, failure, ended(context, end, options)), 200, STREAM_HEADERS);
}

type Streaming<Request, Answer> = (request: Request, context: CallContext) => AsyncIterable<Answer>;

/**
 * Starts a shell. The answer is a stream of JSON lines: `{"data":BASE64}`, and finally
 * `{"exit":CODE}` or `{"error":TEXT}`.
 */
async function terminal(c: Bound, terminals: Terminals, options: SessionRouteOptions): Promise<Response> {
  const body = (await bodyOf(c)) as Record<string, unknown>;
  const who = identified(c, options.sessions);
  const start = {
    ...target((name) => (typeof body[name] === "string" ? body[name] : undefined)),
    options: {
      command: ["/bin/sh", "-c", "exec $(command -v bash || echo sh) -i"],
      stdin: true,
      tty: true,
      size: sizeOf(body),
    },
  };
  const context = contextFor(c, "exec", who.caller);
  assertMayCall(context.caller, context.method, undefined);
  const { signal, end } = options.streams.begin(who, context.signal);
  const { id, requests, close } = terminals.open(who.session, { $case: "start", value: start });
  const frames = options.handlers.exec(requests, { ...context, signal });
  const chunks = mapped(frames, ({ frame }) => {
    if (frame?.$case === "exitCode") return line({ exit: frame.value });
    return line({ data: frame === undefined ? "" : Buffer.from(frame.value).toString("base64") });
  });
  const finish = ended(context, end, options);
  const over = (): void => {
    close();
    finish();
  };
  const failure = (error: unknown): Uint8Array => line({ error: toServiceError(error).details });
  return c.body(chunkStream(chunks, failure, over), 200, { ...STREAM_HEADERS, "x-terminal": id });
}

function line(message: object): Uint8Array {
  return encoder.encode(`${JSON.stringify(message)}\n`);
}

function target(value: (name: string) => string | undefined) {
  return {
    namespace: value("namespace") ?? "",
    pod: value("pod") ?? "",
    container: value("container") ?? "",
  };
}

function inputOf(body: Record<string, unknown>): TerminalInput {
  if (typeof body.data === "string") return { $case: "stdin", value: Buffer.from(body.data, "base64") };
  return { $case: "resize", value: sizeOf(body) };
}

function sizeOf({ columns, rows }: Record<string, unknown>): { columns: number; rows: number } {
  const side = (value: unknown): number => {
    if (Number.isInteger(value) && Number(value) > 0 && Number(value) <= MAX_TERMINAL_SIDE)
      return Number(value);
    throw new CoordinatorError("INVALID", `columns and rows must be from 1 to ${MAX_TERMINAL_SIDE}`);
  };
  return { columns: side(columns), rows: side(rows) };
}

function ended({ method }: CallContext, end: () => void, { observe }: SessionRouteOptions): () => void {
  let open = true;
  return () => {
    if (!open) return;
    open = false;
    end();
    observe(method, 0, 0);
  };
}

async function* mapped<From, To>(items: AsyncIterable<From>, map: (item: From) => To): AsyncGenerator<To> {
  for await (const item of items) yield map(item);
}
