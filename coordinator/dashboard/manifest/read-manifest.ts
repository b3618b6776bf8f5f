import { LineCounter, parseAllDocuments } from "yaml";
import { ApiError } from "../data/api-error.ts";

/** The resources of one namespace, as they would be applied. Fields are as they were written; the coordinator checks them. */
export interface Bundle extends Readonly<Record<string, unknown>> {
  readonly namespace: string;
}

/** Reads a manifest of one or several YAML documents. Throws ApiError with line and column. */
export function readManifest(text: string): readonly Bundle[] {
  const lineCounter = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter, version: "1.2", prettyErrors: false });
  const bundles: Bundle[] = [];
  for (const document of documents) {
    const [error] = document.errors;
    if (error !== undefined) {
      const { line, col } = lineCounter.linePos(error.pos[0]);
      throw new ApiError("INVALID_ARGUMENT", `line ${line}, column ${col}: ${error.message}`);
    }
    const value = document.toJS({ maxAliasCount: 100 }) as unknown;
    if (value === null) continue;
    refuseForeign(value);
    const single = isResource(value);
    const before = bundles.at(-1);
    if (single && before !== undefined) bundles[bundles.length - 1] = withResource(before, value);
    else bundles.push(single ? withResource({ namespace: "default" }, value) : bundleOf(value));
  }
  if (bundles.length === 0) throw new ApiError("INVALID_ARGUMENT", "the manifest is empty");
  return bundles;
}

/** Throws for manifests of Kubernetes and Compose, which only the command converts. */
function refuseForeign(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const { apiVersion, kind, services, resources } = value as Readonly<Record<string, unknown>>;
  const isKubernetes = apiVersion !== undefined && kind !== undefined;
  if (!isKubernetes && (services === undefined || resources !== undefined)) return;
  const what = isKubernetes ? `a manifest of Kubernetes (kind ${String(kind)})` : "a Compose file";
  throw new ApiError(
    "INVALID_ARGUMENT",
    `this is ${what}: \`forage plan -f FILE\` plans it, and \`forage convert -f FILE\` prints the manifest to paste here`,
  );
}

/** Reports whether a document is a single resource, which belongs to the bundle before it. */
function isResource(value: unknown): boolean {
  return typeof value === "object" && value !== null && "name" in value && !("resources" in value);
}

function withResource(bundle: Bundle, resource: unknown): Bundle {
  const before = Array.isArray(bundle.resources) ? bundle.resources : [];
  return { ...bundle, resources: [...before, resource] };
}

function bundleOf(value: unknown): Bundle {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ApiError("INVALID_ARGUMENT", "a manifest is a mapping with namespace, labels and resources");
  const { namespace = "default" } = value as { readonly namespace?: unknown };
  if (typeof namespace !== "string") throw new ApiError("INVALID_ARGUMENT", "namespace: must be text");
  return { ...value, namespace };
}
