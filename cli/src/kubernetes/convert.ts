import type { ParsedNode } from "yaml";
import { Field } from "../conversion/field.ts";
import { isMap, keyText, type ManifestDocument } from "../manifest/document.ts";
import type { Problem } from "../manifest/problem.ts";
import { readAutoscaler } from "./autoscaler-fields.ts";
import { readHttpRoute } from "./http-route-fields.ts";
import { readIngress } from "./ingress-fields.ts";
import { type Item, objectsOf, readItem } from "./item.ts";
import { readCronJob, readJob } from "./job-fields.ts";
import { readClaim, readConfigMap, readNamespace, readPriorityClass, readSecret } from "./object-fields.ts";
import type { Draft, Scope } from "./rules.ts";
import { readService } from "./service-fields.ts";
import { readWorkload, type Workload } from "./workload-fields.ts";

/**
 * A resource or an object in the form of a manifest, with the part of the files from which it was
 * converted.
 */
export interface ConvertedPart {
  /**
   * Whether the part belongs to a bundle, or is an object such as a secret, which is put
   * separately.
   */
  readonly type: "resource" | "object";
  /** The namespace; undefined if the files name none, and empty for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly written: Draft;
  readonly document: ManifestDocument;
  readonly node: ParsedNode;
  /** The name in messages, such as `Deployment/web`. */
  readonly path: string;
}

export interface Converted {
  readonly parts: readonly ConvertedPart[];
  /** The problems that make the files unusable. */
  readonly problems: readonly Problem[];
  /** The parts that can't be converted. */
  readonly losses: readonly Problem[];
}

/** Reports whether a document is a Kubernetes manifest. */
export function isKubernetes(document: ManifestDocument): boolean {
  const root = document.resolve(document.root);
  if (root === undefined || !isMap(root)) return false;
  const keys = root.items.map(keyText);
  return keys.includes("apiVersion") && keys.includes("kind");
}

/**
 * Converts Kubernetes manifests to resources of a manifest. All documents are read together,
 * because services and autoscalers refer to workloads in other documents.
 */
export function convertKubernetes(documents: readonly ManifestDocument[]): Converted {
  const problems: Problem[] = [];
  const losses: Problem[] = [];
  const items = documents.flatMap((document) => {
    const options = {
      document,
      env: {},
      fail: (problem: Problem) => void problems.push(problem),
      lose: (problem: Problem) => void losses.push(problem),
    };
    return objectsOf(new Field(document.root, "", options)).flatMap((field) => readItem(field) ?? []);
  });
  return { parts: [...new Converter(items).parts()], problems, losses };
}

/** A converted part without its position in the files. */
interface Made {
  readonly type: ConvertedPart["type"];
  readonly written: Draft;
  readonly at: Field;
}

class Converter {
  readonly #items: readonly Item[];

  constructor(items: readonly Item[]) {
    this.#items = items;
  }

  *parts(): Iterable<ConvertedPart> {
    const workloads = new Map<Item, Workload>();
    for (const item of this.#items) {
      const workload = this.#readWorkload(item);
      if (workload !== undefined) workloads.set(item, workload);
    }
    const all = [...workloads.values()];
    const scalings = this.#readScalings(all);
    for (const item of this.#items)
      for (const { at, ...made } of [
        ...workloadParts(workloads.get(item), scalings),
        ...this.#partsOf(item, all),
      ])
        yield {
          ...made,
          namespace: item.namespace,
          document: at.document,
          node: at.node,
          path: `${item.kind}/${item.name}`,
        };
  }

  #readWorkload(item: Item): Workload | undefined {
    const { kind } = item;
    if (kind !== "Deployment" && kind !== "StatefulSet" && kind !== "DaemonSet") return undefined;
    return readWorkload(item, kind, this.#keysOf(item));
  }

  #readScalings(workloads: readonly Workload[]): ReadonlyMap<Workload, Draft> {
    const found = new Map<Workload, Draft>();
    for (const item of this.#items.filter(({ kind }) => kind === "HorizontalPodAutoscaler")) {
      const { workload, scaling } = readAutoscaler(item, workloads) ?? {};
      if (workload === undefined || scaling === undefined) continue;
      if (found.has(workload)) item.field.fail(`scales "${workload.item.name}", as another autoscaler does`);
      found.set(workload, scaling);
    }
    return found;
  }

  #partsOf(item: Item, workloads: readonly Workload[]): readonly Made[] {
    switch (item.kind) {
      case "Job":
        return resource(item, "job", readJob(item, this.#keysOf(item)));
      case "CronJob":
        return resource(item, "cron_job", readCronJob(item, this.#keysOf(item)));
      case "Service":
        return resource(item, "service", readService(item, workloads));
      case "HTTPRoute":
        return resource(item, "route", readHttpRoute(item));
      case "Ingress":
        return readIngress(item, this.#portOf).map((written) => ({
          type: "resource",
          written: { ...written },
          at: item.field,
        }));
      case "ConfigMap":
        return object(item, readConfigMap(item));
      case "Secret":
        return object(item, readSecret(item));
      case "PersistentVolumeClaim":
        return object(item, readClaim(item));
      case "PriorityClass":
        return object(item, readPriorityClass(item));
      case "Namespace":
        readNamespace(item);
        return [];
      default:
        return [];
    }
  }

  /**
   * Returns a function that looks up the keys of config maps and secrets in the item's namespace.
   */
  #keysOf({ namespace }: Item): Scope["keysOf"] {
    return (kind, name) => {
      const found = this.#items.find(
        (item) => item.kind === kind && item.name === name && item.namespace === namespace,
      );
      if (found === undefined) return undefined;
      const parts = kind === "Secret" ? ["data", "stringData"] : ["data", "binaryData"];
      const keys = parts.flatMap(
        (part) =>
          found.field
            .get(part)
            ?.entries()
            .map(([key]) => key) ?? [],
      );
      return [...new Set(keys)];
    };
  }

  readonly #portOf = (namespace: string | undefined, service: string, port: string): number | undefined => {
    const found = this.#items.find(
      (item) => item.kind === "Service" && item.name === service && item.namespace === namespace,
    );
    const ports = found?.spec?.get("ports")?.items() ?? [];
    const named = ports.find((each) => each.get("name")?.text() === port);
    return named?.get("port")?.whole();
  };
}

function workloadParts(
  workload: Workload | undefined,
  scalings: ReadonlyMap<Workload, Draft>,
): readonly Made[] {
  if (workload === undefined) return [];
  const { item, claims, spec } = workload;
  const scaling = scalings.get(workload);
  return [
    ...claims.map(({ name, field, claim }) => ({
      type: "object" as const,
      written: { name, labels: item.labels, claim },
      at: field,
    })),
    ...resource(item, "container_service", { ...spec, ...(scaling !== undefined && { scaling }) }),
  ];
}

function resource({ name, field }: Item, kind: string, spec: Draft | undefined): readonly Made[] {
  return spec === undefined ? [] : [{ type: "resource", written: { name, [kind]: spec }, at: field }];
}

function object({ name, labels, field }: Item, spec: Draft | undefined): readonly Made[] {
  return spec === undefined ? [] : [{ type: "object", written: { name, labels, ...spec }, at: field }];
}
