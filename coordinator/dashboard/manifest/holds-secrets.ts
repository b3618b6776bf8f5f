import { parseSource } from "@forage/cli/manifest/document";
import { scrubText } from "@forage/common/scrub-text";
import { isMapping, type Mapping } from "./mapping.ts";

/**
 * Matches names of fields that may hold a secret. Names that end like a reference, such as
 * `secretName`, do not match.
 */
const SECRET_NAME =
  /(pass(word|wd|phrase)|secret|token|credential|(api|access|private)[_-]?key)(?!.*(id|key_?ref|name|file|path|kind|type|count|size|seconds)s?$)/i;
const MAX_DEPTH = 100;

/**
 * Reports whether a manifest may contain values of secrets: it has a Secret of Kubernetes, a value
 * under a name such as `DB_PASSWORD`, or a text that resembles a key, a token or a URL with a
 * password. A text that is not valid YAML may contain some.
 */
export function holdsSecrets(text: string): boolean {
  const { documents, problems } = parseSource({ name: "manifest", text });
  if (problems.length > 0) return true;
  const comments = text.match(/#.*$/gm) ?? [];
  if (comments.some((comment) => scrubText(comment) !== comment)) return true;
  try {
    return documents.some((document) => isSecret(document.toValue(), 0));
  } catch {
    return true;
  }
}

function isSecret(value: unknown, depth: number): boolean {
  if (depth > MAX_DEPTH) return true;
  if (typeof value === "string") return scrubText(value) !== value;
  if (Array.isArray(value)) return value.some((item) => isSecret(item, depth + 1));
  return (
    isMapping(value) && (isNamed(value) || Object.values(value).some((item) => isSecret(item, depth + 1)))
  );
}

/** Reports whether the mapping declares that it holds a secret. */
function isNamed(mapping: Mapping): boolean {
  const { kind, name, value, data, stringData, secrets } = mapping;
  if (kind === "Secret" && (data ?? stringData ?? undefined) !== undefined) return true;
  if (typeof name === "string" && SECRET_NAME.test(name) && isWritten(value)) return true;
  // The mapping is a Compose file with secrets.
  if (isMapping(secrets) && Object.values(secrets).some((each) => isMapping(each) && isWritten(each.content)))
    return true;
  return Object.entries(mapping).some(([key, item]) => SECRET_NAME.test(key) && isWritten(item));
}

function isWritten(value: unknown): boolean {
  return (typeof value === "string" && value !== "") || typeof value === "number";
}
