import type { RuntimeEvent } from "../runtime.ts";

/**
 * Parses one line of `nerdctl events --format '{{json .}}'`. Returns undefined if the event is not about a container of
 * this namespace.
 */
export function parseEvent(line: string, namespace: string): RuntimeEvent | undefined {
  const envelope = parseObject(line);
  if (envelope.Namespace !== namespace) return undefined;
  const data = parseObject(envelope.Event);
  const containerId = typeof data.container_id === "string" ? data.container_id : "";
  switch (envelope.Topic) {
    case "/tasks/start":
      return { type: "started", containerId };
    case "/tasks/oom":
      return { type: "oom", containerId };
    case "/tasks/exit":
      // The exit of an exec has an id of its own.
      if (data.id !== containerId) return undefined;
      // Zero values are omitted from the JSON.
      return {
        type: "exited",
        containerId,
        exitCode: Number(data.exit_status ?? 0),
        atMs: exitTime(data, envelope),
      };
    case "/containers/delete":
      return typeof data.id === "string" ? { type: "removed", containerId: data.id } : undefined;
    default:
      return undefined;
  }
}

function exitTime(data: Record<string, unknown>, envelope: Record<string, unknown>): number {
  const { seconds, nanos } = object(data.exited_at);
  if (typeof seconds === "number") return seconds * 1000 + Math.floor(Number(nanos ?? 0) / 1e6);
  return Date.parse(String(typeof data.exited_at === "string" ? data.exited_at : envelope.Timestamp));
}

function parseObject(json: unknown): Record<string, unknown> {
  if (typeof json !== "string") return {};
  try {
    return object(JSON.parse(json));
  } catch {
    return {};
  }
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
