import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeSidebar, pagesOf } from "./sidebar.ts";

const docs = join(import.meta.dirname, "../../docs");

test("lists the pages below each heading, and those of a listed index below its entry", () => {
  const pages: Readonly<Record<string, string>> = {
    "README.md":
      "# All\n\n[Not in a list](other.md)\n\n## Start\n\n- [The `x` command](x.md)\n\n## More\n\n- [Decisions](decisions/README.md)\n",
    "decisions/README.md":
      "# Decisions\n\n- [First](first.md)\n\n## Store\n\n- [Records](records.md): text\n- [Elsewhere](../x.md#part)\n",
  };
  assert.deepEqual(
    makeSidebar((page) => pages[page] ?? ""),
    [
      { text: "Start", items: [{ text: "The x command", link: "x.md" }] },
      {
        text: "More",
        items: [
          {
            text: "Decisions",
            link: "decisions/README.md",
            collapsed: true,
            items: [
              { text: "First", link: "decisions/first.md" },
              { text: "Store", collapsed: true, items: [{ text: "Records", link: "decisions/records.md" }] },
            ],
          },
        ],
      },
    ],
  );
});

test("every page of the documentation is in the sidebar once", () => {
  const listed = pagesOf(makeSidebar((page) => readFileSync(join(docs, page), "utf8")));
  const pages = globSync("**/*.md", { cwd: docs }).filter((page) => page !== "README.md");
  assert.deepEqual(listed.toSorted(), pages.toSorted());
});
