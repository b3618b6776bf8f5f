import type { Field } from "../conversion/field.ts";
import { eachField, texts } from "./read-amounts.ts";
import type { ServiceDraft } from "./service-draft.ts";

const TYPES = ["ClusterIP", "NodePort", "LoadBalancer", "Headless"];

/** Reads the field `x-forage` of a service. */
export function readExtension(extension: Field, draft: ServiceDraft): void {
  eachField(extension, {
    type: (field) => {
      const type = field.text();
      if (!TYPES.includes(type)) field.fail(`"${type}" is none of ${TYPES.join(", ")}`);
      draft.serviceType = type;
    },
    routes: (field) => {
      for (const item of field.oneOrMore()) {
        const [, hostname, path = "/"] = /^([^/:\s?#]+)(\/[^\s?#]*)?$/.exec(item.text()) ?? [];
        if (hostname === undefined) item.fail("must be HOSTNAME[/PATH]");
        else draft.routes.push({ hostname, path });
      }
    },
    tls: (field) => {
      draft.tls = field.switch();
    },
    registries: (field) => {
      draft.pod.image_pull_secrets = texts(field);
    },
  });
  if (draft.routes.length > 1 && new Set(draft.routes.map(({ path }) => path)).size > 1)
    extension.fail("has routes with different paths: write them as routes of a manifest");
}
