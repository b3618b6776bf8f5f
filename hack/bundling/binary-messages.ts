import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { Plugin } from "esbuild";

const JSON_FUNCTION = /^ {2}(?:fromJSON|toJSON)\(.*\{\n(?: {4}.*\n|\n)* {2}\},\n/gm;
const JSON_CALL = /\.(?:fromJSON|toJSON)\(/;

/**
 * Returns a plugin that removes the functions for JSON from generated messages, a third of their code. Programs
 * with it use the binary form only. A build fails if one of its own sources calls such a function.
 */
export function binaryMessages(root: string): Plugin {
  return {
    name: "binary-messages",
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.ts$/, namespace: "file" }, ({ path }) => {
        const place = relative(root, path);
        if (place.includes("node_modules/")) return undefined;
        const source = readFileSync(path, "utf8");
        if (place.startsWith("proto/gen/")) return { contents: withoutJson(source), loader: "ts" };
        if (place.startsWith("proto/") || !JSON_CALL.test(source)) return undefined;
        return { errors: [{ text: `${place}: uses a message's JSON functions, which are removed` }] };
      }),
  };
}

/** Removes the functions for JSON from a generated module. The bundler then drops the functions that only they call. */
function withoutJson(source: string): string {
  return source.replace(JSON_FUNCTION, "");
}
