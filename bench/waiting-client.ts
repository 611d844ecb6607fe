/** A client that keeps one connection, and waits on it for a new version of a certificate. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** When a client had a file of the new version, by `performance.now`. */
export type Replaced = { readonly chain: number; readonly key: number };

type Received = { readonly status: number; readonly etag: string };

/** Milliseconds: the longest random pause of the installer between the news of a version and its downloads. */
const longestPause = 3000;

export class WaitingClient {
  readonly #socket: Socket;
  readonly #key: string;
  readonly #path: string;

  private constructor(socket: Socket, key: string, certificate: string) {
    this.#socket = socket;
    this.#key = key;
    this.#path = `/api/v1/certificates/${certificate}`;
  }

  /** Connects to the server; `key` is an API key that reads the certificate. */
  static async open(url: string, key: string, certificate: string): Promise<WaitingClient> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new WaitingClient(socket, key, certificate);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Waits so many seconds for another version than that with this entity tag. Returns the status. */
  async wait(etag: string, seconds: number): Promise<number> {
    const { status } = await this.#get(`fullchain.pem?wait=${seconds}`, [`If-None-Match: ${etag}`]);
    return status;
  }

  /** Waits for another version, and downloads its private key after a random pause. */
  async replace(etag: string): Promise<Replaced> {
    const status = await this.wait(etag, 300);
    if (status !== 200) throw new Error(`waiting for a new version responded with status ${status}`);
    const chain = performance.now();
    await delay(Math.random() * longestPause);
    const downloaded = await this.#get('private.key', []);
    if (downloaded.status !== 200)
      throw new Error(`the private key responded with status ${downloaded.status}`);
    return { chain, key: performance.now() };
  }

  /** The entity tag of the current chain. */
  async tag(): Promise<string> {
    return (await this.#get('fullchain.pem', [])).etag;
  }

  /** The headers are those of curl, and what proxies add. */
  async #get(file: string, lines: readonly string[]): Promise<Received> {
    const usual = ['Host: vault.example.test', 'User-Agent: curl/8.5.0', 'Accept: */*'];
    const own = [`Authorization: Bearer ${this.#key}`, 'X-Forwarded-Proto: https', ...lines];
    this.#socket.write(`${[`GET ${this.#path}/${file} HTTP/1.1`, ...usual, ...own].join('\r\n')}\r\n\r\n`);
    let text = '';
    for (;;) {
      const [chunk] = (await once(this.#socket, 'data')) as [Buffer];
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      if (end === -1) continue;
      const head = text.slice(0, end);
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      if (text.length < end + 4 + length) continue;
      return {
        status: Number(head.slice(9, 12)),
        etag: /^etag: (.*)/im.exec(head)?.[1] ?? '',
      };
    }
  }
}
