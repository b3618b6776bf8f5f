/** The place at which a proxy claims to run; empty fields are unknown. No secret depends on it. */
export interface ProxyContext {
  readonly namespace: string;
  readonly node: string;
  readonly pod: string;
}

/** The limit of a token's length. Longer tokens are ignored. */
const MAX_LENGTH = 4096;
/** The limit of a name's length. Longer names are ignored: no namespace, node or pod has one, and names become keys. */
const MAX_NAME_LENGTH = 253;

/** Reads `{"ns": …, "nodeName": …, "pod": …}` or the older `ns:NAME`. A malformed token counts as empty and is never an error. */
export function readContextToken(token: string): ProxyContext {
  if (token.startsWith("ns:") && token.length <= MAX_LENGTH)
    return { namespace: textOf(token.slice(3)), node: "", pod: "" };
  const { ns, nodeName, pod } = fieldsOf(token);
  return { namespace: textOf(ns), node: textOf(nodeName), pod: textOf(pod) };
}

function fieldsOf(token: string): Readonly<Record<string, unknown>> {
  if (token.length > MAX_LENGTH || !token.startsWith("{")) return {};
  try {
    return JSON.parse(token) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" && value.length <= MAX_NAME_LENGTH ? value : "";
}
