import { type Document, isMap, parseDocument } from "yaml";
import type { FileSettings } from "./config-file.ts";

/**
 * Adds or replaces a context in the text of a configuration file. Comments and order stay
 * unchanged.
 */
export function withContext(text: string, name: string, settings: FileSettings): string {
  return edited(text, (document) => {
    if (!isMap(document.get("contexts"))) document.set("contexts", document.createNode({}));
    document.setIn(["contexts", name], document.createNode(settings));
  });
}

/** Sets the current context. */
export function withCurrent(text: string, name: string): string {
  return edited(text, (document) => document.set("current", name));
}

/** Removes a context, and makes none current if it was the current one. */
export function withoutContext(text: string, name: string): string {
  return edited(text, (document) => {
    document.deleteIn(["contexts", name]);
    if (document.get("current") === name) document.delete("current");
  });
}

function edited(text: string, edit: (document: Document) => void): string {
  const document: Document = parseDocument(text, { stringKeys: true });
  if (!isMap(document.contents)) document.contents = document.createNode({});
  edit(document);
  return document.toString({ lineWidth: 0 });
}
