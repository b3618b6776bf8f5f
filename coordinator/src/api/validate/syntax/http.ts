import { controlProblem, lengthProblem } from "./text.ts";

/** Each returns what is wrong, or undefined. Tokens are those of RFC 9110. */

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
const pathCharacters = /^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*$/;

const maxNameBytes = 256;
const maxValueBytes = 4096;
const maxPathBytes = 1024;

export function headerNameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (!token.test(name)) return "is not a header's name";
  return lengthProblem(name, maxNameBytes);
}

export function headerValueProblem(value: string): string | undefined {
  if (value !== value.trim()) return "must not begin or end with a space";
  return controlProblem(value) ?? lengthProblem(value, maxValueBytes);
}

export function methodProblem(method: string): string | undefined {
  if (method === "" || methods.includes(method)) return undefined;
  if (!token.test(method) || method.length > 32) return "is not an HTTP method";
  // Others than the usual ones exist; but no one means a lower-case "get", which never matches.
  const usual = method.toUpperCase();
  return methods.includes(usual) ? `must be written ${usual}` : undefined;
}

export function queryNameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  return /[&=#\s]/.test(name)
    ? "must not hold '&', '=', '#' or spaces"
    : (controlProblem(name) ?? lengthProblem(name, maxNameBytes));
}

/** The path of a URL, without query and fragment. */
export function urlPathProblem(path: string): string | undefined {
  if (!path.startsWith("/")) return "must begin with '/'";
  if (!pathCharacters.test(path)) return "must be the path of a URL, with other characters as %XX";
  return lengthProblem(path, maxPathBytes);
}

/** A path as requests have it once normalised: anything else would never match. */
export function matchedPathProblem(path: string): string | undefined {
  if (path.includes("//")) return "must not hold '//'";
  if (path.split("/").some((part) => part === "." || part === ".."))
    return "must not hold '.' or '..' as a part";
  if (/%2f/i.test(path)) return "must not hold an encoded '/'";
  return urlPathProblem(path);
}

/** Checks the part of a URL after the host: a path, and perhaps a query. */
export function requestTargetProblem(target: string): string | undefined {
  if (!target.startsWith("/")) return "must begin with '/'";
  return /[^\x21-\x7e]|#/.test(target)
    ? "must be a path of a URL, with other characters as %XX"
    : lengthProblem(target, maxPathBytes);
}
