import type { Module } from "./read-sources.ts";

/** Import cycles, types included, each as the paths around it with the first repeated at the end; one per knot. */
export function findCycles(modules: readonly Pick<Module, "path" | "imports">[]): string[][] {
  const graph = new Map(
    modules.map(({ path, imports }) => [path, imports.flatMap(({ target }) => target ?? [])]),
  );
  const done = new Set<string>();
  const cycles: string[][] = [];
  for (const start of graph.keys()) {
    // A depth-first walk with its own stack: a tree of imports may be deeper than the engine's.
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
