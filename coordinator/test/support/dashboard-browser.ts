/** The headers that the page's script sends. */
export const OWN = { "x-forage-dashboard": "1", "content-type": "application/json" };

/** A browser at the port: it keeps the cookie, and sends the requests of the page's script. */
export class Browser {
  readonly base: string;
  cookie = "";

  constructor(httpPort: number) {
    this.base = `http://127.0.0.1:${httpPort}/dashboard`;
  }

  get(path: string, signal?: AbortSignal): Promise<Response> {
    return fetch(`${this.base}/${path}`, { headers: { cookie: this.cookie }, ...(signal && { signal }) });
  }

  post(path: string, body: unknown, headers: Record<string, string> = OWN): Promise<Response> {
    const init = { method: "POST", body: JSON.stringify(body), headers: { cookie: this.cookie, ...headers } };
    return fetch(`${this.base}/api/${path}`, init);
  }

  async login(token: string): Promise<Response> {
    const response = await this.post("login", { token });
    this.cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
    return response;
  }
}
