import type { Plugin } from "esbuild";

const NAMESPACE = "plain-builtin";

/**
 * Returns a plugin by which imports of `node:http` read only the properties that are plain values. The usual import also
 * reads those with a getter, and three of these load the whole of `fetch`: 2 MB in the agent, which doesn't use it. A build
 * fails if a source imports a property with a getter by its name. The default import still has all of them.
 */
export function plainBuiltins(): Plugin {
  return {
    name: NAMESPACE,
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
        kind === "import-statement" ? { path: "http", namespace: NAMESPACE } : undefined,
      );
      onLoad({ filter: /^/, namespace: NAMESPACE }, ({ path }) => ({
        contents: moduleOf(path),
        loader: "js",
      }));
    },
  };
}

function moduleOf(name: string): string {
  const builtin = process.getBuiltinModule(name) ?? {};
  const plain = Object.entries(Object.getOwnPropertyDescriptors(builtin))
    .filter(([, { value }]) => value !== undefined)
    .map(([key]) => key);
  return `const builtin = process.getBuiltinModule(${JSON.stringify(name)});
export default builtin;
export const { ${plain.join(", ")} } = builtin;
`;
}
