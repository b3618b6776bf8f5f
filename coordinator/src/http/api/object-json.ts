import { Object as ObjectMessage } from "@forage/proto/forage/operator/v1/operator";
import * as z from "zod";
import { CoordinatorError } from "../../errors.ts";
import type { ObjectKind, ObjectName } from "../../model/object-name.ts";
import { toEpochMs } from "../../model/timestamp.ts";

const labels = z.record(z.string(), z.string()).default({});
const texts = z.record(z.string(), z.string()).default({});
const content = z.strictObject({ labels, data: texts, stringData: texts });

/** The schemas of PUT bodies. `data` is in base64, as in Kubernetes. */
const schemas = {
  secret: content,
  config_map: content,
  registry_credential: z.strictObject({
    labels,
    server: z.string(),
    username: z.string(),
    password: z.string(),
  }),
  claim: z.strictObject({ labels, capacity: z.string().default("") }),
  priority_class: z.strictObject({
    labels,
    value: z.int32(),
    neverPreempts: z.boolean().default(false),
    globalDefault: z.boolean().default(false),
    description: z.string().default(""),
  }),
} as const satisfies Record<ObjectKind, z.ZodType>;

/** Parses a body. Throws INVALID with the path of every violation, and without any value. */
export function objectOf(name: ObjectName, body: unknown): ObjectMessage {
  return ObjectMessage.fromPartial({
    namespace: name.namespace,
    name: name.name,
    ...specOf(name.kind, body),
  });
}

function specOf(kind: ObjectKind, body: unknown): Parameters<typeof ObjectMessage.fromPartial>[0] {
  switch (kind) {
    case "secret":
    case "config_map": {
      const { labels, data, stringData } = read(schemas[kind], body);
      const $case = kind === "secret" ? "secret" : "configMap";
      return { labels, spec: { $case, value: { data: { ...fromBase64(data), ...fromText(stringData) } } } };
    }
    case "registry_credential": {
      const { labels, ...value } = read(schemas[kind], body);
      return { labels, spec: { $case: "registryCredential", value } };
    }
    case "claim": {
      const { labels, ...value } = read(schemas[kind], body);
      return { labels, spec: { $case: "claim", value } };
    }
    case "priority_class": {
      const { labels, ...value } = read(schemas[kind], body);
      return { labels, spec: { $case: "priorityClass", value } };
    }
    default:
      return kind satisfies never;
  }
}

function read<T extends z.ZodType>(schema: T, body: unknown): z.infer<T> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const violations = result.error.issues.map(({ path, message }) => {
    return { field: path.join("."), description: message };
  });
  const texts = violations.map(({ field, description }) =>
    field === "" ? description : `${field}: ${description}`,
  );
  throw new CoordinatorError("INVALID", `the body is invalid: ${texts.slice(0, 5).join("; ")}`, {
    violations,
  });
}

function fromBase64(data: Readonly<Record<string, string>>): Record<string, Buffer> {
  const entries = Object.entries(data).map(([key, text]) => {
    const bytes = Buffer.from(text, "base64");
    if (bytes.toString("base64") === text) return [key, bytes] as const;
    const violation = {
      field: `data.${key.slice(0, 100)}`,
      description: "must be base64; plain text goes into stringData",
    };
    throw new CoordinatorError("INVALID", `${violation.field}: ${violation.description}`, {
      violations: [violation],
    });
  });
  return Object.fromEntries(entries);
}

function fromText(data: Readonly<Record<string, string>>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text)]));
}

/** Returns the response body. Omits fields that do not apply or that the caller may not read. */
export function jsonOf(object: ObjectMessage): Record<string, unknown> {
  const { namespace, name, labels, createdAt, updatedAt, version, generation, usedBy, spec } = object;
  const time = (ms: number | undefined): string | undefined =>
    ms === undefined ? undefined : new Date(ms).toISOString();
  return {
    ...(namespace !== "" && { namespace }),
    name,
    labels,
    ...specJson(spec),
    ...(version !== "" && { version }),
    generation: Number(generation),
    createdAt: time(toEpochMs(createdAt)),
    updatedAt: time(toEpochMs(updatedAt)),
    usedBy,
  };
}

function specJson(spec: ObjectMessage["spec"]): Record<string, unknown> {
  switch (spec?.$case) {
    case "secret":
    case "configMap": {
      const { data, sizes } = spec.value;
      const entries = Object.entries(data).map(([key, value]) => [key, value.toString("base64")]);
      return { sizes, ...(entries.length > 0 && { data: Object.fromEntries(entries) }) };
    }
    case "registryCredential": {
      const { server, username, password } = spec.value;
      return { server, username, ...(password !== "" && { password }) };
    }
    case "claim":
      return { ...spec.value, usedBytes: Number(spec.value.usedBytes) };
    case "priorityClass":
      return { ...spec.value };
    case undefined:
      return {};
    default:
      return spec satisfies never;
  }
}
