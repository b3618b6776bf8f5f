import { posix } from "node:path";

/** An entry of the site's sidebar, in the form that VitePress reads. */
export interface SidebarEntry {
  readonly text: string;
  /** The path of the page's source, relative to `docs/`. */
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: readonly SidebarEntry[];
}

/** Folders whose index lists the pages below its entry. */
const NESTED: ReadonlySet<string> = new Set(["how-to", "decisions"]);

/**
 * Returns the sidebar: the headings of the contents page, each with the pages that are listed below it.
 *
 * @param read returns the text of a page, by its path relative to `docs/`
 */
export function makeSidebar(read: (page: string) => string): readonly SidebarEntry[] {
  return groupsOf("README.md", read("README.md")).flatMap(({ text, items }) => [
    { text, items: items.map((entry) => withNested(entry, read)) },
  ]);
}

/** Returns the pages that a sidebar links to. */
export function pagesOf(entries: readonly SidebarEntry[]): readonly string[] {
  return entries.flatMap(({ link, items = [] }) => [
    ...(link === undefined ? [] : [link]),
    ...pagesOf(items),
  ]);
}

function withNested(entry: SidebarEntry, read: (page: string) => string): SidebarEntry {
  if (entry.link === undefined || !NESTED.has(posix.dirname(entry.link))) return entry;
  const groups = groupsOf(entry.link, read(entry.link));
  const items = groups.flatMap((group) =>
    group.text === "" ? group.items : [{ text: group.text, collapsed: true, items: group.items }],
  );
  return { ...entry, collapsed: true, items };
}

/**
 * Returns the lists of links in a page, each with the heading above it, which is empty before the first second-level
 * heading.
 */
function groupsOf(
  page: string,
  text: string,
): readonly { readonly text: string; readonly items: readonly SidebarEntry[] }[] {
  return text.split(/^## /m).flatMap((section, index) => {
    const items = [...section.matchAll(/^- \[([^\]]+)\]\(([^)#\s]+\.md)\)/gm)].map(
      ([, title = "", link = ""]) => ({
        text: title.replaceAll("`", ""),
        link: posix.join(posix.dirname(page), link),
      }),
    );
    const heading = index === 0 ? "" : (section.split("\n", 1)[0] ?? "");
    return items.length === 0 ? [] : [{ text: heading, items }];
  });
}
