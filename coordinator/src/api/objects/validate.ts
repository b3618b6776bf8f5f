import type {
  Claim,
  Object as ObjectMessage,
  PriorityClass,
  PutObjectRequest,
  RegistryCredential,
} from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../../errors.ts";
import { isObjectKind, OBJECT_KINDS, type ObjectKind, type ObjectName } from "../../model/object-name.ts";
import { MAX_CLASS_VALUE, RESERVED_CLASS_PREFIX } from "../../model/priority.ts";
import type { Content } from "../../objects/vault.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { validateLabels } from "../validate/labels.ts";
import { configKeyProblem, dnsLabelProblem, dnsSubdomainProblem } from "../validate/syntax/names.ts";
import { amountOf } from "../validate/syntax/quantity.ts";
import { controlProblem, lengthProblem } from "../validate/syntax/text.ts";
import type { ObjectDraft } from "./draft.ts";

/** The limit of contents: Kubernetes' limit, which fits into one transaction and one pod's assignment. */
const MAX_CONTENT_BYTES = 1024 * 1024;
const MAX_KEYS = 1_000;
const MAX_DESCRIPTION_BYTES = 1024;
const MAX_USER_BYTES = 256;
const MAX_PASSWORD_BYTES = 16 * 1024;
/** The smallest capacity. A smaller file system has no room for files. */
const MIN_CAPACITY_BYTES = 1024 * 1024;
/** A registry's host with an optional port, as in names of images. */
const REGISTRY_SERVER =
  /^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?(:[0-9]{1,5})?$|^\[[0-9a-fA-F:]+\](:[0-9]{1,5})?$/;
const NANO_PER_BYTE = 1_000_000_000n;

/** Validates a put. @throws CoordinatorError INVALID with every violation. The messages don't contain values. */
export function validatePut({
  namespace,
  object,
}: Pick<PutObjectRequest, "namespace" | "object">): ObjectDraft {
  const findings = new Findings();
  const field = new Field(findings).at("object");
  if (object?.spec === undefined) {
    field.invalid(`must have one of ${OBJECT_KINDS.join(", ")}`);
    findings.raise();
    throw new TypeError("unreachable");
  }
  const kind = kindOf(object.spec);
  const name: ObjectName = { namespace, kind, name: object.name };
  checkNamespace(namespace, kind, new Field(findings).at("namespace"));
  if (object.namespace !== namespace) field.at("namespace").invalid("must be the request's namespace");
  field.at("name").check(dnsSubdomainProblem(object.name));
  validateLabels(object.labels, field.at("labels"));
  const rest = specOf(object.spec, object.name, field.at(kind));
  findings.raise();
  return { name, labels: object.labels, ...rest };
}

/** Returns the name of the object in the request. @throws CoordinatorError INVALID. */
export function validateName(request: {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}): ObjectName {
  const { namespace, kind, name } = request;
  const known = validateKind(kind);
  const findings = new Findings();
  const root = new Field(findings);
  checkNamespace(namespace, known, root.at("namespace"));
  root.at("name").check(dnsSubdomainProblem(name));
  findings.raise();
  return { namespace, kind: known, name };
}

export function validateKind(kind: string): ObjectKind {
  if (isObjectKind(kind)) return kind;
  const description = `must be one of ${OBJECT_KINDS.join(", ")}`;
  throw new CoordinatorError("INVALID", `kind: ${description}`, {
    violations: [{ field: "kind", description }],
  });
}

function checkNamespace(namespace: string, kind: ObjectKind, field: Field): void {
  if (kind !== "priority_class") field.check(dnsLabelProblem(namespace));
  else if (namespace !== "") field.invalid("must be empty: priority classes belong to the whole cluster");
}

type Spec = NonNullable<ObjectMessage["spec"]>;

function kindOf(spec: Spec): ObjectKind {
  switch (spec.$case) {
    case "configMap":
      return "config_map";
    case "registryCredential":
      return "registry_credential";
    case "priorityClass":
      return "priority_class";
    case "secret":
    case "claim":
      return spec.$case;
    default:
      return spec satisfies never;
  }
}

function specOf(spec: Spec, name: string, field: Field): Pick<ObjectDraft, "content" | "spec"> {
  switch (spec.$case) {
    case "secret":
    case "configMap":
      checkContent(spec.value.data, field.at("data"));
      return { content: spec.value.data };
    case "registryCredential":
      return credentialOf(spec.value, field);
    case "claim":
      return claimOf(spec.value, field);
    case "priorityClass":
      return classOf(spec.value, name, field);
    default:
      return spec satisfies never;
  }
}

function checkContent(data: Content, field: Field): void {
  const entries = Object.entries(data);
  if (entries.length > MAX_KEYS) field.invalid(`must have at most ${MAX_KEYS} keys, has ${entries.length}`);
  const bytes = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + value.byteLength, 0);
  if (bytes > MAX_CONTENT_BYTES)
    field.invalid(`must not be longer than ${MAX_CONTENT_BYTES} bytes together, has ${bytes}`);
  for (const [key] of entries) {
    const problem = configKeyProblem(key);
    if (problem !== undefined) field.key(key).invalid(`the key ${problem}`);
  }
}

function credentialOf(
  { server, username, password }: RegistryCredential,
  field: Field,
): Pick<ObjectDraft, "content" | "spec"> {
  if (!REGISTRY_SERVER.test(server) || server.length > 300)
    field
      .at("server")
      .invalid("must be a registry's host, such as docker.io, with a port if the names of images have one");
  if (username === "") field.at("username").invalid("must not be empty");
  field.at("username").check(controlProblem(username) ?? lengthProblem(username, MAX_USER_BYTES));
  if (username.includes(":"))
    field.at("username").invalid("must not contain ':', which separates it from the password");
  if (password === "") field.at("password").invalid("must not be empty");
  field.at("password").check(controlProblem(password) ?? lengthProblem(password, MAX_PASSWORD_BYTES));
  const texts = { server, username, password };
  const content = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text)]));
  return { content, spec: { $case: "registry", value: { server, username } } };
}

function claimOf({ capacity }: Claim, field: Field): Pick<ObjectDraft, "spec"> {
  const nano = capacity === "" ? 0n : capacityOf(capacity, field.at("capacity"));
  const capacityBytes = (nano + NANO_PER_BYTE - 1n) / NANO_PER_BYTE;
  return { spec: { $case: "claim", value: { capacity, capacityBytes, node: "", deleting: false } } };
}

function capacityOf(text: string, field: Field): bigint {
  const { nano, problem } = amountOf("ephemeral-storage", text);
  field.check(problem);
  if (nano !== undefined && nano < BigInt(MIN_CAPACITY_BYTES) * NANO_PER_BYTE)
    field.invalid("must be at least 1Mi");
  return nano ?? 0n;
}

function classOf(
  { value, neverPreempts, globalDefault, description }: PriorityClass,
  name: string,
  field: Field,
): Pick<ObjectDraft, "spec"> {
  if (value > MAX_CLASS_VALUE) field.at("value").invalid(`must be at most ${MAX_CLASS_VALUE}`);
  if (name.startsWith(RESERVED_CLASS_PREFIX))
    field.invalid(`names that begin with ${RESERVED_CLASS_PREFIX} are reserved for built-in classes`);
  field
    .at("description")
    .check(controlProblem(description) ?? lengthProblem(description, MAX_DESCRIPTION_BYTES));
  return {
    spec: { $case: "priorityClass", value: { value, neverPreempts, globalDefault, description } },
  };
}
