import type { Field } from "./field.ts";
import { labelKeyProblem, labelValueProblem } from "./syntax/names.ts";

type Texts = Readonly<Record<string, string>>;

const MAX_LABELS = 64;
/** The limit of labels in bytes, because they are copied to every resource and pod of the request. */
const MAX_LABEL_BYTES = 16 * 1024;
/** The limit of annotations in bytes. Kubernetes' limit. */
const MAX_ANNOTATION_BYTES = 256 * 1024;

export function validateLabels(labels: Texts, field: Field): void {
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS)
    field.invalid(`must be at most ${MAX_LABELS}, but ${entries.length} were given`);
  if (bytesOf(labels) > MAX_LABEL_BYTES)
    field.invalid(`must not be longer than ${MAX_LABEL_BYTES} bytes together`);
  for (const [key, value] of entries) {
    const at = field.key(key);
    at.check(about("key", labelKeyProblem(key)));
    at.check(about("value", labelValueProblem(value)));
  }
}

/** Validates annotations. Keys have the syntax of label keys with letters of either case, values are any text. */
export function validateAnnotations(annotations: Texts, field: Field): void {
  if (bytesOf(annotations) > MAX_ANNOTATION_BYTES)
    field.invalid(`must not be longer than ${MAX_ANNOTATION_BYTES} bytes together`);
  for (const key of Object.keys(annotations)) {
    field.key(key).check(about("key", labelKeyProblem(key.toLowerCase())));
  }
}

function about(what: string, problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `the ${what} ${problem}`;
}

function bytesOf(texts: Texts): number {
  return Object.entries(texts).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
}
