import type { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { type Container, EnvVar } from "@forage/proto/forest/v1/forage";

/** Kubernetes' variable and annotation for the index. */
const INDEX_VARIABLE = "JOB_COMPLETION_INDEX";
export const INDEX_KEY = "batch.kubernetes.io/job-completion-index";

/**
 * Returns the template of the pod with this index of an Indexed job. Parts that don't depend on the index are shared with
 * `template`.
 */
export function indexedTemplate(template: PodTemplate, index: number): PodTemplate {
  const withIndex = (container: Container): Container => {
    if (container.env.some(({ name }) => name === INDEX_VARIABLE)) return container;
    const variable = EnvVar.fromPartial({
      name: INDEX_VARIABLE,
      valueSource: { $case: "value", value: String(index) },
    });
    return { ...container, env: [variable, ...container.env] };
  };
  const { podConfig, container } = template;
  return {
    ...template,
    container: container && withIndex(container),
    podConfig: podConfig && {
      ...podConfig,
      annotations: { ...podConfig.annotations, [INDEX_KEY]: String(index) },
    },
  };
}
