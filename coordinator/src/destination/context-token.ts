/**
 * The namespace, node and pod that a proxy claims to have; empty fields are unknown. The claim
 * gives no access to secrets.
 */
export interface ProxyContext {
  readonly namespace: string;
  readonly node: string;
  readonly pod: string;
}

/** The length limit of a token. Longer tokens are ignored. */
const MAX_LENGTH = 4096;
/**
 * The length limit of a name. Longer names are ignored, because no namespace, node or pod has one,
 * and names become keys.
 */
const MAX_NAME_LENGTH = 253;

/**
 * Parses `{"ns": …, "nodeName": …, "pod": …}` or the older `ns:NAME`. A malformed token is treated
 * as empty.
 */
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
