import { useLayoutEffect, useState } from "preact/hooks";

/** The page and parameters in the URL's fragment, such as `#/pods/shop/web-1?tab=logs`. */
export interface PageLocation {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export function usePageLocation(): PageLocation {
  const [place, setPlace] = useState(present);
  // A layout effect runs in the same turn as the rendering. An ordinary effect runs a frame later
  // and would miss a change of the URL before.
  useLayoutEffect(() => {
    const changed = (): void => setPlace(present());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return place;
}

export function href(...path: readonly string[]): string {
  return `#/${path.map(encodeURIComponent).join("/")}`;
}

export function go(...path: readonly string[]): void {
  location.hash = href(...path);
}

/** Returns the address of the same page with one parameter changed. */
export function withQuery({ path, query }: PageLocation, name: string, value: string): string {
  const changed = new URLSearchParams(query);
  if (value === "") changed.delete(name);
  else changed.set(name, value);
  const text = changed.toString();
  return `${href(...path)}${text === "" ? "" : `?${text}`}`;
}

function present(): PageLocation {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter((part) => part !== "");
  return { path: parts.map(decoded), query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
