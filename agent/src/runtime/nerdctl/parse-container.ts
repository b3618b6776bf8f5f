import { type RuntimeContainer, RuntimeError } from "../runtime.ts";

/**
 * The format for `nerdctl ps --format`: one JSON object on each line. In nerdctl's own JSON form labels are joined with
 * commas, so that a label of an image could imitate one of the agent's.
 */
export const LIST_FORMAT =
  '{"id":{{json .ID}},"name":{{json .Names}},"image":{{json .Image}},"status":{{json .Status}},"labels":{{json .LabelsMap}}}';

/** The format for `nerdctl container inspect --format`. */
export const INSPECT_FORMAT =
  '{"id":{{json .ID}},"name":{{json .Name}},"image":{{json .Image}},"labels":{{json .Config.Labels}},"state":{{json .State}}}';

/** Parses a list. Containers that vanished during the listing appear as empty objects and are left out. */
export function parseList(stdout: string): readonly RuntimeContainer[] {
  return stdout.split("\n").flatMap((line) => {
    if (line.trim() === "") return [];
    const item = parseObject(line);
    const id = text(item.id);
    return id === "" ? [] : [{ ...parseIdentity(item, id), ...parseStatus(text(item.status)) }];
  });
}

export function parseInspect(stdout: string): RuntimeContainer {
  const item = parseObject(stdout);
  const state = object(item.state);
  const status = parseState(text(state.Status));
  const pid = Number(state.Pid);
  return {
    ...parseIdentity(item, text(item.id)),
    state: status,
    ...(status === "exited" && { exitCode: Number(state.ExitCode) }),
    ...optionalTime("startedAtMs", text(state.StartedAt)),
    ...(status === "exited" && optionalTime("finishedAtMs", text(state.FinishedAt))),
    // nerdctl 2.0 still reports the last pid after the end.
    ...(pid > 0 && status !== "exited" && { pid }),
  };
}

function parseIdentity(item: Record<string, unknown>, id: string) {
  // The labels of nerdctl and containerd are not relevant to the agent.
  const labels = Object.entries(object(item.labels)).filter(
    ([key]) => !/^(nerdctl|containerd\.io|io\.containerd\.)/.test(key),
  );
  return {
    id,
    name: text(item.name).replace(/^\//, ""),
    image: text(item.image),
    labels: Object.fromEntries(labels.map(([key, value]) => [key, text(value)])),
  };
}

/** Parses `Up`, `Up (healthy)`, `Created`, `Exited (137) 5 seconds ago`, `Restarting (1) …`, `Paused` or `Unknown`. */
function parseStatus(status: string): Pick<RuntimeContainer, "state"> & { readonly exitCode?: number } {
  const ended = /^(?:Exited|Restarting) \((\d+)\)/.exec(status);
  if (ended) return { state: "exited", exitCode: Number(ended[1]) };
  return { state: parseState(status.split(" ")[0] ?? "") };
}

function parseState(word: string): RuntimeContainer["state"] {
  switch (word.toLowerCase()) {
    case "up":
    case "running":
      return "running";
    case "created":
      return "created";
    case "exited":
    case "stopped":
    case "restarting":
      return "exited";
    case "paused":
    case "pausing":
      return "paused";
    default:
      return "unknown";
  }
}

// Go's zero time is in the year 1.
function optionalTime<K extends string>(key: K, iso: string): { [name in K]?: number } {
  const atMs = Date.parse(iso);
  return atMs > 0 ? ({ [key]: atMs } as { [name in K]?: number }) : {};
}

function parseObject(json: string): Record<string, unknown> {
  try {
    return object(JSON.parse(json));
  } catch (cause) {
    throw new RuntimeError("UNKNOWN", "nerdctl wrote something that is not JSON", { retryable: true, cause });
  }
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
