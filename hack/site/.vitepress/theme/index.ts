// The package defines a global variable, so it is loaded as a script and not as a module.
import mermaidUrl from "@mermaid-js/tiny/dist/mermaid.tiny.js?url";
import { useData } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { type App, defineComponent, h, onMounted, shallowRef, useId, watch } from "vue";

interface Mermaid {
  initialize(options: { readonly startOnLoad: boolean; readonly theme: string }): void;
  render(id: string, source: string): Promise<{ readonly svg: string }>;
}

/** Draws a diagram in the page's colours. In browsers without JavaScript, shows the diagram's source. */
const Diagram = defineComponent({
  props: { source: { type: String, required: true } },
  setup({ source }) {
    const text = decodeURIComponent(source);
    const svg = shallowRef("");
    const { isDark } = useData();
    const id = `diagram-${useId()}`;
    const draw = async (): Promise<void> => {
      const mermaid = await loadMermaid();
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? "dark" : "neutral" });
      svg.value = (await mermaid.render(id, text)).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () => (svg.value === "" ? h("pre", text) : h("div", { innerHTML: svg.value }));
  },
});

function loadMermaid(): Promise<Mermaid> {
  const loaded = (): Mermaid | undefined =>
    (globalThis as { readonly mermaid?: Mermaid & Record<string, unknown> }).mermaid;
  const { promise, resolve, reject } = Promise.withResolvers<Mermaid>();
  const present = loaded();
  if (present) return Promise.resolve(present);
  const script = document.createElement("script");
  script.src = mermaidUrl;
  script.onload = () => {
    const mermaid = loaded();
    if (mermaid) resolve(mermaid);
    else reject(new Error(`${mermaidUrl} defines no mermaid`));
  };
  script.onerror = () => reject(new Error(`${mermaidUrl} can't be loaded`));
  document.head.append(script);
  return promise;
}

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }: { readonly app: App }) => {
    app.component("Diagram", Diagram);
  },
};
