import { convertCompose, isCompose } from "@forage/cli/compose/convert";
import { type ConvertedPart, convertKubernetes, isKubernetes } from "@forage/cli/kubernetes/convert";
import { findPair, isMap, type ManifestDocument, parseSource } from "@forage/cli/manifest/document";
import type { BundleOrigins, Origin } from "@forage/cli/manifest/origin";
import type { Problem } from "@forage/cli/manifest/problem";
import { renderDocument } from "@forage/cli/output/document";
import type { ParsedNode } from "yaml";
import { manifestFault } from "./manifest-fault.ts";
import { isMapping, type Mapping, withDefaultReplicas } from "./mapping.ts";

/**
 * The resources with the same namespace and labels, with fields as they were written; the
 * coordinator validates them.
 */
export interface PastedBundle extends BundleOrigins {
  readonly namespace: string;
  /** The fields of one apply request. */
  readonly content: Mapping;
}

/** An object that pods refer to, such as a secret. Each is applied by its own request. */
export interface PastedObject {
  /** The namespace; empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
  /** The kind, such as `config_map`. */
  readonly kind: string;
  /** The labels and the specification, with the field names of the contract. */
  readonly written: Mapping;
  readonly origin: Origin;
}

export interface PastedManifest {
  readonly bundles: readonly PastedBundle[];
  readonly objects: readonly PastedObject[];
  /** The converted manifest in YAML; undefined if nothing was converted. */
  readonly converted: string | undefined;
  /** The parts that were omitted in the conversion. */
  readonly losses: readonly Problem[];
}

export interface ReadManifestOptions {
  /** The namespace of resources without one. */
  readonly namespace: string;
  /** Whether to omit parts that can't be converted. If false, they are reported as problems. */
  readonly isLossy: boolean;
}

/** The length limit of a manifest: the coordinator accepts requests up to 4 MiB. */
const MAX_LENGTH = 4 * 1024 * 1024;
/** The most requests of one manifest. */
const MAX_REQUESTS = 500;

/**
 * Reads manifests of Forage and Kubernetes and Compose files, in one or several YAML documents.
 * Throws ApiError with line and field of each problem.
 */
export function readManifest(text: string, { namespace, isLossy }: ReadManifestOptions): PastedManifest {
  const reader = new ManifestReader(namespace);
  if (text.length > MAX_LENGTH) throw manifestFault([], "the manifest is longer than 4 MiB");
  reader.read(text);
  const { problems, losses, objects } = reader;
  if (problems.length > 0 || (losses.length > 0 && !isLossy)) {
    const heading =
      problems.length > 0
        ? "the manifest is not valid:"
        : "parts of the manifest can't be carried over, and can only be left out:";
    throw manifestFault([...problems, ...(isLossy ? [] : losses)], heading);
  }
  const bundles = reader.bundles();
  const count = bundles.length + objects.length;
  if (count === 0) throw manifestFault([], "the manifest is empty");
  if (count > MAX_REQUESTS)
    throw manifestFault(
      [],
      `the manifest holds ${count} objects and groups of resources, more than ${MAX_REQUESTS}: use forage plan`,
    );
  return { bundles, objects, losses, converted: reader.isConverted ? render(bundles) : undefined };
}

function render(bundles: readonly PastedBundle[]): string {
  return bundles.map(({ content }) => renderDocument("yaml", content)).join("---\n");
}

/** The namespace and labels that a document sets for the resources in it or after it. */
interface Scope {
  readonly fields: Mapping;
  readonly origin: Origin | undefined;
}

interface Draft extends Scope {
  readonly namespace: string;
  readonly resources: { readonly written: unknown; readonly origin: Origin }[];
}

const NO_SCOPE: Scope = { fields: {}, origin: undefined };

class ManifestReader {
  readonly problems: Problem[] = [];
  readonly losses: Problem[] = [];
  readonly objects: PastedObject[] = [];
  /** Whether a document was converted from another notation. */
  isConverted = false;
  readonly #namespace: string;
  readonly #drafts = new Map<string, Draft>();

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  read(text: string): void {
    const { documents, problems } = parseSource({ name: "manifest", text });
    this.problems.push(...problems);
    if (problems.length > 0) return;
    let scope = NO_SCOPE;
    for (const [index, document] of documents.entries()) {
      if (isKubernetes(document)) scope = NO_SCOPE;
      else if (isCompose(document)) {
        this.#readCompose(document);
        scope = NO_SCOPE;
      } else scope = this.#readOwn(document, scope, documents[index + 1]);
    }
    // Kubernetes documents refer to one another regardless of their positions.
    this.#readKubernetes(documents.filter(isKubernetes));
  }

  bundles(): PastedBundle[] {
    return [...this.#drafts.values()].map(({ namespace, fields, origin, resources }) => ({
      namespace,
      content: { namespace, ...fields, resources: resources.map(({ written }) => written) },
      header: origin,
      resources: resources.map((each) => each.origin),
    }));
  }

  /** Reads a document in Forage's notation. Returns the scope for the following documents. */
  #readOwn(document: ManifestDocument, scope: Scope, next: ManifestDocument | undefined): Scope {
    const origin = { document, node: document.root, path: "" };
    const value = this.#valueOf(origin);
    if (!isMapping(value)) {
      this.#fail(origin, "", "a manifest is a mapping with namespace, labels and resources");
      return NO_SCOPE;
    }
    if ("name" in value && !("resources" in value)) {
      this.#add(scope, withDefaultReplicas(value), origin);
      return scope;
    }
    const { resources, ...fields } = value;
    const own = { fields, origin };
    if (fields.namespace !== undefined && typeof fields.namespace !== "string")
      this.#fail(origin, "namespace", "must be text");
    else if ("resources" in value) this.#addAll(own, resources, origin);
    else if (!isFollowed(next))
      this.#fail(origin, "", "the document has no resources, and no document with resources follows it");
    return own;
  }

  #addAll(scope: Scope, resources: unknown, origin: Origin): void {
    if (!Array.isArray(resources) || resources.length === 0) {
      const message = Array.isArray(resources) ? "is empty: nothing would be applied" : "must be a list";
      this.#fail(origin, "resources", message);
      return;
    }
    const nodes = itemsOf(origin);
    for (const [index, written] of resources.entries()) {
      const path = `resources[${index}]`;
      const { document } = origin;
      this.#add(scope, withDefaultReplicas(written), { document, node: nodes[index] ?? origin.node, path });
    }
  }

  #readCompose(document: ManifestDocument): void {
    const origin = { document, node: document.root, path: "" };
    // A browser has no shell variables, so only the defaults in the file apply.
    const { namespace, labels, resources, problems, losses } = convertCompose(document, {});
    this.#note(problems, losses);
    const scope = {
      fields: {
        ...(namespace !== undefined && { namespace }),
        ...(Object.keys(labels).length > 0 && { labels }),
      },
      origin,
    };
    for (const { resource, node, path } of resources)
      this.#add(scope, resource, { ...{ document, node, path }, isConverted: true });
  }

  #readKubernetes(documents: readonly ManifestDocument[]): void {
    if (documents.length === 0) return;
    const { parts, problems, losses } = convertKubernetes(documents);
    this.#note(problems, losses);
    for (const part of parts) this.#addPart(part);
  }

  #note(problems: readonly Problem[], losses: readonly Problem[]): void {
    this.isConverted = true;
    this.problems.push(...problems);
    this.losses.push(...losses);
  }

  #addPart({ type, namespace, written, document, node, path }: ConvertedPart): void {
    const origin = { document, node, path, isConverted: true };
    if (type === "resource") {
      const fields = namespace === undefined || namespace === "" ? {} : { namespace };
      this.#add({ fields, origin }, written, origin);
      return;
    }
    const { name, ...rest } = written;
    const kind = Object.keys(rest).find((key) => key !== "labels") ?? "";
    this.objects.push({
      namespace: namespace ?? this.#namespace,
      name: String(name),
      kind,
      written: rest,
      origin,
    });
  }

  /**
   * Adds a resource. Resources of the same namespace and labels are applied together, in their
   * written order.
   */
  #add(scope: Scope, written: unknown, origin: Origin): void {
    const { namespace = this.#namespace, labels = {} } = scope.fields;
    const key = JSON.stringify([namespace, isMapping(labels) ? Object.entries(labels).sort() : labels]);
    const draft = this.#drafts.get(key);
    if (draft !== undefined) draft.resources.push({ written, origin });
    else this.#drafts.set(key, { ...scope, namespace: String(namespace), resources: [{ written, origin }] });
  }

  #valueOf(origin: Origin): unknown {
    try {
      return origin.document.toValue();
    } catch (error) {
      this.#fail(origin, "", error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  #fail({ document, node }: Origin, path: string, message: string): void {
    const root = document.resolve(node);
    const pair = root !== undefined && isMap(root) ? findPair(root, [path]) : undefined;
    this.problems.push({ position: document.positionOf(pair?.value ?? node), path, message });
  }
}

/** Reports whether a document inherits the scope of the one before it. */
function isFollowed(next: ManifestDocument | undefined): boolean {
  const root = next?.resolve(next.root);
  if (root === undefined || !isMap(root)) return false;
  return findPair(root, ["name"]) !== undefined && findPair(root, ["resources", "services"]) === undefined;
}

function itemsOf({ document }: Origin): readonly ParsedNode[] {
  const root = document.resolve(document.root);
  const value = root !== undefined && isMap(root) ? findPair(root, ["resources"])?.value : undefined;
  const list = value === undefined || value === null ? undefined : document.resolve(value);
  return list !== undefined && "items" in list ? (list.items as ParsedNode[]) : [];
}
