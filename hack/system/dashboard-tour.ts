import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { APPEARANCE_RULES, findAccessFaults, startBrowser } from "../lib/browser.ts";
import { waitFor } from "../lib/wait-for.ts";

/**
 * The directory for pictures of the pages, if set. `FORAGE_PICTURES=docs/pictures hack/test hack/e2e/dashboard` makes
 * those of the docs.
 */
const PICTURES = process.env.FORAGE_PICTURES;
const WIDE = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 780 };
const LIMIT_MS = 60_000;
const SETTLE_MS = 5_000;

/** A page of the dashboard to visit. */
export interface View {
  /** The name of its picture. */
  readonly name: string;
  readonly address: string;
  readonly heading: string;
  /** A text that appears once the page has its content. Default: none, the heading suffices. */
  readonly text?: string | RegExp;
  /** The name of a graph on the page. */
  readonly graph?: RegExp;
  /** Whether the picture of a phone shows this page. */
  readonly onPhone?: boolean;
}

/** A browser with the dashboard. It records errors of its pages. */
export class DashboardTour {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly complaints: string[] = [];
  readonly #browser: Browser;

  static async start(): Promise<DashboardTour> {
    const browser = await startBrowser();
    const context = await browser.newContext({ viewport: WIDE });
    context.setDefaultTimeout(LIMIT_MS);
    return new DashboardTour(browser, context, await context.newPage());
  }

  private constructor(browser: Browser, context: BrowserContext, page: Page) {
    this.#browser = browser;
    this.context = context;
    this.page = page;
    context.on("weberror", (thrown) => this.complaints.push(thrown.error().message));
    context.on("console", (message) => {
      // Chromium aborts requests when pods change the host's network interfaces, and the page sends them again.
      if (message.text().includes("net::ERR_NETWORK_CHANGED")) return;
      // Browsers request icons from pods that don't have any.
      if (message.location().url.includes(".localhost:")) return;
      if (message.type() === "error" && !message.text().includes("401")) this.complaints.push(message.text());
    });
  }

  /** Removes errors from the record that the test has caused. */
  allowed(...texts: readonly string[]): void {
    for (const text of texts) {
      const at = this.complaints.findIndex((complaint) => complaint.includes(text));
      assert.notEqual(at, -1, `no line with "${text}": ${this.complaints.join("\n")}`);
      this.complaints.splice(at, 1);
    }
  }

  /** Opens a page, and waits for its heading. */
  async visit(address: string, heading: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(`#/${address}`)}`);
    await this.shows(heading);
  }

  /** Waits until the page has the heading. */
  async shows(heading: string): Promise<void> {
    const shown = this.page.getByRole("heading", { name: heading, level: 1, exact: true }).waitFor();
    await shown.catch(async (cause: unknown) => {
      const text = await this.page.locator("body").textContent();
      const complaints = this.complaints.join("\n");
      throw new Error(`no heading "${heading}" at ${this.page.url()}:\n${text}\n${complaints}`, { cause });
    });
  }

  /** Opens a page just as pages start to appear, like a person who types an address while they load. */
  async visitOnceShown(address: string): Promise<void> {
    await this.page.evaluate(`new MutationObserver((_, own) => {
      if (document.getElementById("content") === null) return;
      own.disconnect();
      location.hash = ${JSON.stringify(`#/${address}`)};
    }).observe(document.body, { childList: true, subtree: true })`);
  }

  /**
   * Returns the paths that a page requests in an hour of its timers. Streams are left out, because a browser reopens
   * them when the network of its host changes. Afterwards the test still controls the page's clock.
   */
  async askedInAnHour(heading: string): Promise<string[]> {
    const asked: string[] = [];
    const note = (request: Request): void => {
      const { pathname } = new URL(request.url());
      if (!/\/api\/(live|history|events|usage)/.test(pathname)) asked.push(pathname);
    };
    await this.page.clock.install();
    await this.page.reload();
    await this.visit(heading.toLowerCase(), heading);
    await this.page.locator(".connection.live").waitFor();
    this.page.on("request", note);
    await this.page.clock.runFor("01:00:00");
    this.page.off("request", note);
    return asked;
  }

  /** Takes a picture, and checks the accessibility of the page. */
  async checked(name: string, shown = this.page): Promise<void> {
    await this.picture(name, shown);
    assert.deepEqual(await findAccessFaults(shown), [], name);
  }

  async picture(name: string, shown = this.page): Promise<void> {
    if (PICTURES === undefined) return;
    mkdirSync(PICTURES, { recursive: true });
    await shown.screenshot({ path: join(PICTURES, `dashboard-${name}.png`) });
  }

  /**
   * Checks each page in light and dark mode, on a desktop and on a phone: its width, and its accessibility. All rules
   * apply in one of the four cases, and in the others those for colours and widths.
   */
  async checkAll(views: readonly View[]): Promise<void> {
    const faults: string[] = [];
    for (const view of views) {
      await this.#as("light", WIDE);
      await this.visit(view.address, view.heading);
      if (view.text !== undefined) await this.page.getByText(view.text).first().waitFor();
      if (view.graph !== undefined) await this.page.getByRole("figure", { name: view.graph }).waitFor();
      await this.picture(view.name);
      faults.push(...(await this.#faultsOf(view, "light")));
      await this.#as("light", PHONE);
      faults.push(...(await this.#faultsOf(view, "light, 390 pixels", APPEARANCE_RULES)));
      await this.#as("dark", PHONE);
      faults.push(...(await this.#faultsOf(view, "dark, 390 pixels", APPEARANCE_RULES)));
      if (view.onPhone) await this.picture("phone");
      await this.#as("dark", WIDE);
      faults.push(...(await this.#faultsOf(view, "dark", APPEARANCE_RULES)));
    }
    await this.#as("light", WIDE);
    assert.deepEqual(faults, []);
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }

  async #as(colorScheme: "light" | "dark", size: typeof WIDE): Promise<void> {
    await this.page.emulateMedia({ colorScheme });
    await this.page.setViewportSize(size);
  }

  async #faultsOf(view: View, how: string, rules?: readonly string[]): Promise<string[]> {
    const found = await findAccessFaults(this.page, rules);
    return [...found.map((fault) => `${view.name} (${how}): ${fault}`), ...(await this.#tooWide(view, how))];
  }

  async #tooWide({ name }: View, how: string): Promise<string[]> {
    const room = this.page.viewportSize()?.width ?? 0;
    let width = 0;
    const fits = async (): Promise<boolean> => {
      width = Number(await this.page.evaluate("document.documentElement.scrollWidth"));
      return width <= room;
    };
    // Graphs change their width a moment after the window.
    const isFitting = await waitFor(fits, { what: "the page fits", limitMs: SETTLE_MS }).then(
      () => true,
      () => false,
    );
    return isFitting ? [] : [`${name} (${how}): the page is ${width} pixels wide`];
  }
}
