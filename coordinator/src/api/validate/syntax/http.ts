import { controlProblem, lengthProblem } from "./text.ts";

/** The functions return what is wrong, or undefined. Tokens are those of RFC 9110. */

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
const PATH_CHARACTERS = /^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*$/;

const MAX_NAME_BYTES = 256;
const MAX_VALUE_BYTES = 4096;
const MAX_PATH_BYTES = 1024;

export function headerNameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (!TOKEN.test(name)) return "is not a header's name";
  return lengthProblem(name, MAX_NAME_BYTES);
}

export function headerValueProblem(value: string): string | undefined {
  if (value !== value.trim()) return "must not begin or end with a space";
  return controlProblem(value) ?? lengthProblem(value, MAX_VALUE_BYTES);
}

export function methodProblem(method: string): string | undefined {
  if (method === "" || METHODS.includes(method)) return undefined;
  if (!TOKEN.test(method) || method.length > 32) return "is not an HTTP method";
  // Uncommon methods are valid, but a lower-case "get" is a mistake that never matches.
  const usual = method.toUpperCase();
  return METHODS.includes(usual) ? `must be written ${usual}` : undefined;
}

export function queryNameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  return /[&=#\s]/.test(name)
    ? "must not contain '&', '=', '#' or spaces"
    : (controlProblem(name) ?? lengthProblem(name, MAX_NAME_BYTES));
}

/** Validates the path of a URL, without query and fragment. */
export function urlPathProblem(path: string): string | undefined {
  if (!path.startsWith("/")) return "must begin with '/'";
  if (!PATH_CHARACTERS.test(path)) return "must be the path of a URL, with other characters as %XX";
  return lengthProblem(path, MAX_PATH_BYTES);
}

/** Validates a path in normalised form, because requests are normalised before they are matched. */
export function matchedPathProblem(path: string): string | undefined {
  if (path.includes("//")) return "must not contain '//'";
  if (path.split("/").some((part) => part === "." || part === ".."))
    return "must not contain '.' or '..' as a segment";
  if (/%2f/i.test(path)) return "must not contain an encoded '/'";
  return urlPathProblem(path);
}

/** Validates the part of a URL after the host: a path with an optional query. */
export function requestTargetProblem(target: string): string | undefined {
  if (!target.startsWith("/")) return "must begin with '/'";
  return /[^\x21-\x7e]|#/.test(target)
    ? "must be a path of a URL, with other characters as %XX"
    : lengthProblem(target, MAX_PATH_BYTES);
}
