import { SchedulerError } from "../scheduler-error.ts";

/** Checks a JSON value at a path. Throws `invalid_scenario` with the path of the first invalid field. */
export type Shape = (value: unknown, path: string) => void;

export function fail(path: string, message: string): never {
  throw new SchedulerError("invalid_scenario", `${path || "scenario"}: ${message}`, path);
}

export const anything: Shape = () => {};

export const text: Shape = (value, path) => {
  if (typeof value !== "string") fail(path, "must be a string");
};

export const name: Shape = (value, path) => {
  if (typeof value !== "string" || value === "") fail(path, "must be a string that is not empty");
};

export const flag: Shape = (value, path) => {
  if (typeof value !== "boolean") fail(path, "must be true or false");
};

export function integer(least: number, most: number): Shape {
  return (value, path) => {
    if (!Number.isInteger(value) || Number(value) < least || Number(value) > most) {
      fail(path, `must be an integer from ${least} to ${most}`);
    }
  };
}

export function oneOf(...allowed: readonly string[]): Shape {
  return (value, path) => {
    if (typeof value !== "string" || !allowed.includes(value))
      fail(path, `must be one of ${allowed.join(", ")}`);
  };
}

export function listOf(item: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) fail(path, "must be a list");
    for (const [index, entry] of value.entries()) item(entry, `${path}[${index}]`);
  };
}

export function mapOf(item: Shape): Shape {
  return (value, path) => {
    if (!isObject(value)) fail(path, "must be an object");
    for (const [key, entry] of Object.entries(value)) item(entry, `${path}.${key}`);
  };
}

/** Accepts an object with exactly these fields. Optional ones may be null, which means absent. */
export function object(
  required: Readonly<Record<string, Shape>>,
  optional: Readonly<Record<string, Shape>> = {},
): Shape {
  return (value, path) => {
    if (!isObject(value)) fail(path, "must be an object");
    const at = (field: string) => (path === "" ? field : `${path}.${field}`);
    for (const field in required) {
      if (value[field] === undefined || value[field] === null) fail(at(field), "is missing");
    }
    for (const [field, entry] of Object.entries(value)) {
      const shape = required[field] ?? optional[field];
      if (shape === undefined) fail(at(field), "is not a field that is known here");
      if (entry !== null) shape(entry, at(field));
    }
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
