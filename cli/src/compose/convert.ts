import type { ParsedNode } from "yaml";
import { didYouMean } from "../command/suggest.ts";
import { Field } from "../conversion/field.ts";
import { isMap, keyText, type ManifestDocument } from "../manifest/document.ts";
import type { Problem } from "../manifest/problem.ts";
import { interpolate } from "./interpolate.ts";
import { eachField, losing, pairs } from "./read-amounts.ts";
import { type Mapping, ServiceDraft } from "./service-draft.ts";
import { SERVICE_FIELDS } from "./service-fields.ts";
import { readObjects } from "./volume-fields.ts";

/** A resource in the form of a manifest, with the part of the file from which it was converted. */
export interface ConvertedResource {
  readonly resource: Mapping;
  readonly node: ParsedNode;
  readonly path: string;
}

export interface Converted {
  readonly namespace: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly resources: readonly ConvertedResource[];
  /** The problems that make the file unusable. */
  readonly problems: readonly Problem[];
  /** The parts that can't be converted. */
  readonly losses: readonly Problem[];
}

/** Reports whether a document is a Compose file. Manifests have no `services`. */
export function isCompose(document: ManifestDocument): boolean {
  const root = document.resolve(document.root);
  if (root === undefined || !isMap(root)) return false;
  const keys = root.items.map(keyText);
  return keys.includes("services") && !keys.includes("resources");
}

/**
 * Converts a Compose file to the resources of a manifest. `env` contains the variables that the
 * file may use.
 */
export function convertCompose(
  document: ManifestDocument,
  env: Readonly<Record<string, string | undefined>>,
): Converted {
  const problems: Problem[] = [];
  const losses: Problem[] = [];
  const root = new Field(document.root, "", {
    document,
    env,
    expand: (text) => interpolate(text, env),
    fail: (problem) => void problems.push(problem),
    lose: (problem) => void losses.push(problem),
  });
  const resources: ConvertedResource[] = [];
  const labels: Record<string, string> = {};
  let namespace: string | undefined;
  eachField(root, {
    version: () => {},
    name: (field) => {
      labels.app ??= field.text();
    },
    services: (field) => {
      for (const [name, service] of field.entries()) {
        const converted = readService(name, service).map((resource) => ({ resource, ...placeOf(service) }));
        resources.push(...converted);
      }
    },
    networks: losing("do not separate services here: all pods of the fleet reach one another"),
    volumes: (field) => readObjects(field, (name) => `forage claim create ${name} -n NAMESPACE`),
    secrets: (field) =>
      readObjects(
        field,
        (name) =>
          `forage secret set ${name} --from-file ${name}=FILE -n NAMESPACE, and write external: true here`,
      ),
    configs: (field) =>
      readObjects(
        field,
        (name) =>
          `forage config set ${name} --from-file ${name}=FILE -n NAMESPACE, and write external: true here`,
      ),
    include: losing("is not read: name the files with -f"),
    models: losing("has no counterpart"),
  });
  for (const [name, field] of root.get("x-forage")?.entries() ?? []) {
    if (name === "namespace") namespace = field.text();
    else if (name === "labels") for (const [key, value] of pairs(field)) labels[key] = value ?? "";
    else field.fail("is an unknown field; there are namespace and labels");
  }
  return { namespace, labels, resources, problems, losses };
}

function placeOf({ node, path }: Field): { readonly node: ParsedNode; readonly path: string } {
  return { node, path };
}

function readService(name: string, service: Field): Mapping[] {
  const draft = new ServiceDraft(name);
  for (const [key, field] of service.entries()) {
    if (field.kind === "null") continue;
    const rule = Object.hasOwn(SERVICE_FIELDS, key) ? SERVICE_FIELDS[key] : undefined;
    if (rule === undefined) {
      if (!key.startsWith("x-"))
        field.fail(`is an unknown field${didYouMean(key, Object.keys(SERVICE_FIELDS))}`);
    } else if (typeof rule === "function") rule(field, draft);
    else field.lose(rule.lost);
  }
  if (draft.container.image === undefined) service.fail("has no image");
  if (draft.routes.length > 0 && draft.ports.length === 0) service.fail("has routes but no ports");
  return draft.resources();
}
