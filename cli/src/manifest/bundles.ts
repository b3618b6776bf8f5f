import { Object as ApiObject } from "@forage/proto/forage/operator/v1/operator";
import { forageSchema } from "@forage/proto/forage-schema";
import { ApplyResourcesRequest, ForageResource } from "@forage/proto/forest/v1/forage";
import { forestSchema } from "@forage/proto/forest-schema";
import type { JsonObject } from "@forage/proto/json-message";
import type { ParsedNode } from "yaml";
import { convertCompose, isCompose } from "../compose/convert.ts";
import { type ConvertedPart, convertKubernetes, isKubernetes } from "../kubernetes/convert.ts";
import { MessageChecker } from "./check-message.ts";
import { withDefaultReplicas } from "./default-replicas.ts";
import { findPair, isMap, keyText, type ManifestDocument, parseSource } from "./document.ts";
import type { BundleOrigins, Origin } from "./origin.ts";
import { manifestError, type Problem } from "./problem.ts";
import type { Source } from "./source.ts";

/** The content of one ApplyResources request, with the source position of each part. */
export interface Bundle extends BundleOrigins {
  readonly request: ApplyResourcesRequest;
}

/**
 * An object to which pods refer, such as a secret. Each is put separately, before the bundles are
 * applied.
 */
export interface ManifestObject {
  /** The object with its namespace. Priority classes have none. */
  readonly object: ApiObject;
  readonly origin: Origin;
}

/** The content of all manifests. */
export interface Manifest {
  readonly bundles: readonly Bundle[];
  readonly objects: readonly ManifestObject[];
}

export interface BundleOptions {
  /** The namespace of resources whose manifest names none. */
  readonly namespace: string;
  /** The namespace that manifests must not contradict. */
  readonly flagNamespace: string | undefined;
  /** The conversion of Compose files and Kubernetes manifests. If absent, they are refused. */
  readonly conversion?: ConversionOptions;
}

export interface ConversionOptions {
  /** The variables that files may use. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with each part that can't be converted. If undefined, such a part is a problem. */
  readonly onLoss: ((problem: Problem) => void) | undefined;
}

interface Scope {
  readonly namespace: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly applyId: string | undefined;
  readonly origin: Origin | undefined;
}

interface Draft extends Scope {
  readonly resources: { readonly resource: ForageResource; readonly origin: Origin }[];
}

const noScope: Scope = { namespace: undefined, labels: {}, applyId: undefined, origin: undefined };
const BUNDLE_TYPE = "forest.v1.ApplyResourcesRequest";
const RESOURCE_TYPE = "forest.v1.ForageResource";
const OBJECT_TYPE = "forage.operator.v1.Object";

/**
 * Reads manifests, or throws all problems. A document with `resources` is a bundle. A document with
 * only a namespace or labels applies them to the single resources that follow it in the same file.
 * Resources of the same namespace and labels form one bundle, in their written order.
 */
export function readManifest(sources: readonly Source[], options: BundleOptions): Manifest {
  const reader = new BundleReader(options);
  for (const source of sources) reader.read(source);
  reader.convert();
  if (reader.problems.length > 0)
    throw manifestError(reader.problems, "the manifest is not valid; nothing was sent:");
  return { bundles: reader.bundles(), objects: reader.objects };
}

/** Reads manifests in Forage's own notation. */
export function readBundles(
  sources: readonly Source[],
  options: Omit<BundleOptions, "conversion">,
): readonly Bundle[] {
  return readManifest(sources, options).bundles;
}

class BundleReader {
  readonly problems: Problem[] = [];
  readonly objects: ManifestObject[] = [];
  /** Kubernetes documents, which are converted together. */
  readonly #kubernetes: ManifestDocument[] = [];
  readonly #options: BundleOptions;
  readonly #drafts = new Map<string, Draft>();

  constructor(options: BundleOptions) {
    this.#options = options;
  }

  read(source: Source): void {
    const { documents, problems } = parseSource(source);
    this.problems.push(...problems);
    if (problems.length > 0) return;
    if (documents.length === 0) {
      this.problems.push({
        position: { file: source.name, line: 1, column: 1 },
        path: "",
        message: "holds no resources",
      });
    }
    let scope = noScope;
    let unused: Origin | undefined;
    for (const document of documents) {
      const origin = { document, node: document.root, path: "" };
      if (isKubernetes(document) || isCompose(document)) {
        this.#reportUnused(unused);
        if (isKubernetes(document)) this.#keepKubernetes(origin);
        else this.#readCompose(document);
        scope = noScope;
        unused = undefined;
      } else if (isBundle(document)) {
        this.#reportUnused(unused);
        scope = this.#readBundle(origin);
        unused = hasResources(document) ? undefined : origin;
      } else {
        this.#readResource(origin, scope);
        unused = undefined;
      }
    }
    this.#reportUnused(unused);
  }

  bundles(): Bundle[] {
    return [...this.#drafts.values()].map(({ namespace, labels, applyId, origin, resources }) => ({
      request: ApplyResourcesRequest.create({
        applyId: applyId ?? "",
        namespace: namespace ?? this.#options.namespace,
        labels,
        resources: resources.map(({ resource }) => resource),
      }),
      header: origin,
      resources: resources.map((each) => each.origin),
    }));
  }

  /** Converts the documents that refer to each other, after all were read. */
  convert(): void {
    const { conversion } = this.#options;
    if (conversion === undefined || this.#kubernetes.length === 0) return;
    const { parts, problems, losses } = convertKubernetes(this.#kubernetes);
    this.problems.push(...problems, ...(conversion.onLoss === undefined ? losses.map(withRemedy) : []));
    for (const loss of losses) conversion.onLoss?.(loss);
    if (problems.length === 0) for (const part of parts) this.#addPart(part);
  }

  #keepKubernetes(origin: Origin): void {
    if (this.#options.conversion === undefined)
      this.#fail(origin, "kind", "belongs to a Kubernetes manifest, which is not read here");
    else this.#kubernetes.push(origin.document);
  }

  #addPart({ type, namespace, written, document, node, path }: ConvertedPart): void {
    const origin = { document, node, path, isConverted: true };
    this.#checkNamespace(namespace === "" ? undefined : namespace, origin);
    if (type === "resource") {
      this.#addConverted({ namespace, labels: {}, applyId: undefined, origin }, written, origin);
      return;
    }
    const object = this.#checkConverted(written, OBJECT_TYPE, origin);
    if (object === undefined) return;
    const read = ApiObject.fromJSON(object);
    this.objects.push({ object: { ...read, namespace: namespace ?? this.#options.namespace }, origin });
  }

  #readBundle(origin: Origin): Scope {
    const { document } = origin;
    const object = this.#check(origin, BUNDLE_TYPE);
    if (object === undefined) return noScope;
    const request = ApplyResourcesRequest.fromJSON(object);
    const scope = {
      namespace: request.namespace === "" ? undefined : request.namespace,
      labels: request.labels,
      applyId: request.applyId === "" ? undefined : request.applyId,
      origin,
    };
    this.#checkNamespace(scope.namespace, origin);
    const root = document.resolve(document.root);
    const value = root !== undefined && isMap(root) ? findPair(root, ["resources"])?.value : undefined;
    const list = value === undefined || value === null ? undefined : document.resolve(value);
    const items = list !== undefined && "items" in list ? (list.items as ParsedNode[]) : [];
    if (list !== undefined && items.length === 0) {
      this.#fail(
        origin,
        "resources",
        "is empty; to remove everything with certain labels use `forage delete -l key=value`",
      );
    }
    for (const [index, node] of items.entries()) {
      const resource = request.resources[index];
      if (resource !== undefined) this.#add(scope, resource, { document, node, path: `resources[${index}]` });
    }
    return scope;
  }

  #readCompose(document: ManifestDocument): void {
    const { conversion } = this.#options;
    const origin = { document, node: document.root, path: "" };
    if (conversion === undefined) {
      this.#fail(origin, "services", "belongs to a Compose file, which is not read here");
      return;
    }
    const { namespace, labels, resources, problems, losses } = convertCompose(document, conversion.env);
    this.problems.push(...problems, ...(conversion.onLoss === undefined ? losses.map(withRemedy) : []));
    for (const loss of losses) conversion.onLoss?.(loss);
    this.#checkNamespace(namespace, origin);
    if (problems.length > 0) return;
    for (const { resource, node, path } of resources)
      this.#addConverted({ namespace, labels, applyId: undefined, origin }, resource, {
        ...{ document, node, path, isConverted: true },
      });
  }

  #addConverted(scope: Scope, written: object, origin: Origin): void {
    const object = this.#checkConverted(written, RESOURCE_TYPE, origin);
    if (object !== undefined) this.#add(scope, ForageResource.fromJSON(object), origin);
  }

  /** Checks a converted message like one in a manifest. Problems are reported at its origin. */
  #checkConverted(written: object, type: string, origin: Origin): JsonObject | undefined {
    const [document] = parseSource({ name: "", text: JSON.stringify(written) }).documents;
    if (document === undefined) throw new TypeError("a converted message has no document");
    const schema = type === OBJECT_TYPE ? forageSchema : forestSchema;
    const checker = new MessageChecker(schema, document);
    const object = checker.check(document.root, type, "");
    for (const { path, message } of checker.problems) this.#fail(origin, origin.path, `${path}: ${message}`);
    return checker.problems.length === 0 ? object : undefined;
  }

  #readResource(origin: Origin, scope: Scope): void {
    const object = this.#check(origin, RESOURCE_TYPE);
    if (object !== undefined) this.#add(scope, ForageResource.fromJSON(object), origin);
  }

  #check({ document, node }: Origin, type: string): JsonObject | undefined {
    const checker = new MessageChecker(forestSchema, document);
    const object = checker.check(node, type, "");
    this.problems.push(...checker.problems);
    return checker.problems.length > 0 ? undefined : object;
  }

  #add(scope: Scope, read: ForageResource, origin: Origin): void {
    const resource = origin.isConverted === true ? read : withDefaultReplicas(read, origin.node);
    if (resource.name === "") this.#fail(origin, join(origin.path, "name"), "is missing");
    if (resource.spec === undefined) {
      this.#fail(origin, origin.path, "has no spec: one of container_service, service, route, cron_job, job");
    }
    const namespace = scope.namespace ?? this.#options.namespace;
    const key = JSON.stringify([namespace, Object.entries(scope.labels).sort()]);
    const draft = this.#drafts.get(key);
    if (draft === undefined) {
      this.#drafts.set(key, { ...scope, namespace, resources: [{ resource, origin }] });
      return;
    }
    draft.resources.push({ resource, origin });
    if (scope.applyId === undefined || scope.applyId === draft.applyId) return;
    if (draft.applyId === undefined)
      this.#drafts.set(key, { ...draft, applyId: scope.applyId, origin: scope.origin });
    else
      this.#fail(
        scope.origin ?? origin,
        "apply_id",
        `differs from "${draft.applyId}", which the same bundle has elsewhere`,
      );
  }

  #checkNamespace(namespace: string | undefined, origin: Origin): void {
    const { flagNamespace } = this.#options;
    if (namespace === undefined || flagNamespace === undefined || namespace === flagNamespace) return;
    this.#fail(origin, "namespace", `"${namespace}" contradicts -n ${flagNamespace}`);
  }

  #reportUnused(origin: Origin | undefined): void {
    if (origin !== undefined)
      this.#fail(origin, "", "the document has no resources, and no document with resources follows it");
  }

  #fail({ document, node }: Origin, path: string, message: string): void {
    const root = document.resolve(node);
    const pair =
      root !== undefined && isMap(root)
        ? findPair(root, [path, path.replace("apply_id", "applyId")])
        : undefined;
    this.problems.push({ position: document.positionOf(pair?.value ?? node), path, message });
  }
}

function withRemedy(problem: Problem): Problem {
  return { ...problem, message: `${problem.message} (--lossy leaves it out)` };
}

function isBundle(document: ManifestDocument): boolean {
  const fields = forestSchema[BUNDLE_TYPE]?.fields ?? [];
  return hasKey(
    document,
    fields.flatMap(({ name, jsonName }) => [name, jsonName]),
  );
}

function hasResources(document: ManifestDocument): boolean {
  return hasKey(document, ["resources"]);
}

function hasKey(document: ManifestDocument, names: readonly string[]): boolean {
  const root = document.resolve(document.root);
  return root !== undefined && isMap(root) && root.items.some((pair) => names.includes(keyText(pair)));
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
