import type { PathMatch } from "@forage/proto/forest/v1/forage";

/**
 * Converts a route's path match to a regular expression for the whole path; undefined matches any
 * path.
 */
export function pathRegex(path: PathMatch | undefined): string | undefined {
  if (path === undefined || path.value === "") return undefined;
  switch (path.type) {
    case "Exact":
      return escaped(path.value);
    case "RegularExpression":
      return path.value;
    default: {
      const prefix = path.value.replace(/\/+$/, "");
      return prefix === "" ? undefined : `${escaped(prefix)}(/.*)?`;
    }
  }
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
