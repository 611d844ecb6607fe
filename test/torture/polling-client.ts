/**
 * A model of a run of the client installer: the same requests in the same order with the same headers, retries and
 * checks. year.test.ts compares it with the real requests of assets/install.sh. It does not report what is installed.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';

/** The defaults of the script for CERTIFICATE_VAULT_*. */
const fetchTries = 3;
const pauseSeconds = 3;

/** The files of a job, in order. */
export const jobFiles = ['fullchain.crt', 'private.key'] as const;

type File = (typeof jobFiles)[number];

export type Answer = {
  /** 0 if there was no response. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

export type Asked = { readonly path: string; readonly ifNoneMatch: string | undefined };

/** The environment of the model. */
export type Surroundings = {
  readonly url: () => string;
  readonly agent: Agent;
  readonly now: () => number;
  /** Waits between two attempts. */
  readonly pause: (ms: number) => Promise<void>;
  /** Called for every attempt. */
  readonly seen: (asked: Asked, answer: Answer) => void;
  /** Called between the first and the second download. */
  readonly between?: (certificate: string) => Promise<void>;
};

type Installed = { readonly etag: string; readonly body: string };

/** The files of a client. */
export type Pair = {
  readonly version: number;
  /** UTC milliseconds. */
  readonly notAfter: number;
  readonly files: ReadonlyMap<File, Installed>;
};

export type RunOutcome =
  | { readonly kind: 'installed' | 'unchanged'; readonly version: number }
  | { readonly kind: 'fetch'; readonly reason: string }
  | { readonly kind: 'check'; readonly reason: string };

export class PollingClient {
  readonly certificate: string;
  readonly #key: string;
  readonly #surroundings: Surroundings;
  pair: Pair | undefined;

  constructor(certificate: string, key: string, surroundings: Surroundings) {
    this.certificate = certificate;
    this.#key = key;
    this.#surroundings = surroundings;
  }

  /** A scheduled run: downloads, checks and installs. Installs nothing unless all files match. */
  async run(): Promise<RunOutcome> {
    const next = new Map<File, Installed>();
    let pinned = '';
    let fetched = false;
    for (const file of jobFiles) {
      const known = this.pair?.files.get(file);
      const query = pinned === '' ? '' : `?version=${pinned}`;
      const path = `/api/v1/certificates/${this.certificate}/${file}${query}`;
      const { status, headers, body } = await this.#getPatiently({ path, ifNoneMatch: known?.etag });
      if (status !== 200 && status !== 304) return { kind: 'fetch', reason: String(status) };
      const version = String(headers['certificate-version'] ?? '');
      if (!/^[1-9][0-9]*$/.test(version)) return { kind: 'fetch', reason: 'no Certificate-Version' };
      if (pinned !== '' && version !== pinned)
        return { kind: 'fetch', reason: `version ${version} for ${pinned}` };
      pinned = version;
      if (status === 304) {
        if (known === undefined) return { kind: 'fetch', reason: '304 without anything to compare with' };
        next.set(file, known);
      } else {
        if (headers.etag === undefined) return { kind: 'fetch', reason: 'no ETag' };
        next.set(file, { etag: headers.etag, body });
        fetched = true;
      }
      if (file === jobFiles[0]) await this.#surroundings.between?.(this.certificate);
    }
    return this.#install(next, Number(pinned), fetched);
  }

  #install(files: ReadonlyMap<File, Installed>, version: number, fetched: boolean): RunOutcome {
    if (!fetched && this.pair !== undefined) {
      this.pair = { ...this.pair, version };
      return { kind: 'unchanged', version };
    }
    const read = readPair(files);
    if (typeof read === 'string') return { kind: 'check', reason: read };
    const { notAfter } = read;
    if (notAfter <= this.#surroundings.now()) return { kind: 'check', reason: 'the certificate has expired' };
    if (this.pair !== undefined && version < this.pair.version)
      return { kind: 'check', reason: 'it is older' };
    this.pair = { version, notAfter, files };
    return { kind: 'installed', version };
  }

  async #getPatiently(asked: Asked): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await get(this.#surroundings, asked, this.#key);
      this.#surroundings.seen(asked, answer);
      const { status } = answer;
      const mayHelp = status === 0 || status === 408 || status === 429 || status >= 500;
      if (!mayHelp || tries === fetchTries) return answer;
      await this.#surroundings.pause(pauseSeconds * 1000 * tries);
    }
  }
}

/** The expiry of a matching certificate and key, or the error. */
function readPair(files: ReadonlyMap<File, Installed>): { notAfter: number } | string {
  const chain = files.get('fullchain.crt')?.body ?? '';
  const key = files.get('private.key')?.body ?? '';
  if (!/^-----BEGIN CERTIFICATE-----\n.+-----END CERTIFICATE-----\n$/s.test(chain)) return 'incomplete chain';
  if (!/^-----BEGIN PRIVATE KEY-----\n.+-----END PRIVATE KEY-----\n$/s.test(key)) return 'incomplete key';
  const leaf = new X509Certificate(chain);
  if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'the key does not match the certificate';
  return { notAfter: leaf.validToDate.getTime() };
}

function get({ url, agent }: Surroundings, { path, ifNoneMatch }: Asked, key: string): Promise<Answer> {
  const headers = {
    Authorization: `Bearer ${key}`,
    Accept: '*/*',
    ...(ifNoneMatch !== undefined && { 'If-None-Match': ifNoneMatch }),
  };
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const none = () => resolve({ status: 0, headers: {}, body: '' });
  httpRequest(new URL(path, url()), { agent, headers }, (reply) => {
    let body = '';
    reply
      .setEncoding('utf8')
      .on('data', (piece: string) => {
        body += piece;
      })
      .on('error', none)
      .on('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body }));
  })
    .on('error', none)
    .end();
  return promise;
}
