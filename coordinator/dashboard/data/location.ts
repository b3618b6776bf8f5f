import { useLayoutEffect, useState } from "preact/hooks";

/** The page that the address names: `#/pods/shop/web-1?tab=logs`. */
export interface Place {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export function usePlace(): Place {
  const [place, setPlace] = useState(present);
  // In the turn in which the component is drawn: an effect comes a frame later, and would miss an address that changes before.
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

/** Returns the address with another value of one parameter. The page stays the same. */
export function withQuery({ path, query }: Place, name: string, value: string): string {
  const changed = new URLSearchParams(query);
  if (value === "") changed.delete(name);
  else changed.set(name, value);
  const text = changed.toString();
  return `${href(...path)}${text === "" ? "" : `?${text}`}`;
}

function present(): Place {
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
