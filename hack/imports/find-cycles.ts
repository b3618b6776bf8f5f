import type { Module } from "./read-sources.ts";

/**
 * Returns import cycles, types included, each as the paths around it with the first repeated at the end. Each strongly
 * connected group has one.
 */
export function findCycles(modules: readonly Pick<Module, "path" | "imports">[]): string[][] {
  const graph = new Map(
    modules.map(({ path, imports }) => [path, imports.flatMap(({ target }) => target ?? [])]),
  );
  const done = new Set<string>();
  const cycles: string[][] = [];
  for (const start of graph.keys()) {
    // A depth-first walk with its own stack, because a tree of imports may be deeper than the engine's stack.
    const stack = [{ path: start, next: 0 }];
    const onStack = new Set([start]);
    while (stack.length > 0) {
      const top = stack.at(-1);
      if (!top) break;
      const target = done.has(top.path) ? undefined : graph.get(top.path)?.[top.next++];
      if (target === undefined) {
        done.add(top.path);
        onStack.delete(top.path);
        stack.pop();
      } else if (onStack.has(target)) {
        const paths = stack.map(({ path }) => path);
        cycles.push([...paths.slice(paths.indexOf(target)), target]);
      } else if (!done.has(target) && graph.has(target)) {
        stack.push({ path: target, next: 0 });
        onStack.add(target);
      }
    }
  }
  return cycles;
}

/**
 * Returns import cycles between the folders directly below `root`, such as `coordinator/src`, each as the folders
 * around it with the first repeated at the end. Tests and the files in `root` itself may import every folder.
 */
export function findFolderCycles(
  root: string,
  modules: readonly Pick<Module, "path" | "imports">[],
): string[][] {
  const folderOf = (path: string): string | undefined =>
    path.startsWith(`${root}/`) ? /^([^/]+)\//.exec(path.slice(root.length + 1))?.[1] : undefined;
  const imports = new Map<string, Set<string>>();
  for (const module of modules) {
    const folder = folderOf(module.path);
    if (folder === undefined || module.path.endsWith(".test.ts")) continue;
    const targets = imports.get(folder) ?? new Set();
    imports.set(folder, targets);
    for (const { target } of module.imports) {
      const to = target === undefined ? undefined : folderOf(target);
      if (to !== undefined && to !== folder) targets.add(to);
    }
  }
  return findCycles(
    [...imports].map(([path, targets]) => ({
      path,
      imports: [...targets].map((target) => ({ specifier: target, line: 1, target })),
    })),
  );
}
