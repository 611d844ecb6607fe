/**
 * An ACME client that does nothing but order, to load any server: P-256 keys, one connection, the nonces of answers.
 */
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { Agent, request } from 'node:https';
import { json } from 'node:stream/consumers';
import { explicit, implicit, integer, objectIdentifier, sequence, setOf } from '../src/crypto/der.ts';
import { bitString, extension } from '../src/crypto/x509/x509-values.ts';

/** A server, and what clients need of it. */
export type AcmeServer = {
  readonly directory: string;
  /** PEM: what its HTTPS certificate is verified with. */
  readonly ca: string;
  /** The external account binding. */
  readonly binding?: { readonly kid: string; readonly key: Buffer };
  /** Has the challenge http-01 answered. */
  readonly publish?: (token: string, authorization: string) => void;
};

/** What is ordered: a DNS name, and the CSR for it in base64url. */
export type Wish = { readonly name: string; readonly csr: string };

type Answer = { readonly status: number; readonly location: string; readonly body: Body };

type Body = {
  readonly status?: string;
  readonly authorizations?: readonly string[];
  readonly finalize?: string;
  readonly certificate?: string;
  readonly challenges?: readonly { readonly type: string; readonly url: string; readonly token: string }[];
  readonly newNonce?: string;
  readonly newAccount?: string;
  readonly newOrder?: string;
  readonly text?: string;
};

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A client with a key and a connection of its own. */
export class AcmeLoadClient {
  readonly #server: AcmeServer;
  readonly #agent: Agent;
  readonly #key: KeyObject;
  readonly #jwk: { readonly kty: string; readonly crv: string; readonly x: string; readonly y: string };
  readonly #thumbprint: string;
  #directory: Body = {};
  #nonce = '';
  #account = '';
  /** Of all kinds. */
  requests = 0;

  constructor(server: AcmeServer) {
    this.#server = server;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1, ca: server.ca });
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { kty = '', crv = '', x = '', y = '' } = publicKey.export({ format: 'jwk' });
    this.#key = privateKey;
    this.#jwk = { kty, crv, x, y };
    const canonical = JSON.stringify({ crv, kty, x, y });
    this.#thumbprint = createHash('sha256').update(canonical).digest('base64url');
  }

  /** Creates the account. */
  async register(): Promise<void> {
    this.#directory = (await this.#send('GET', this.#server.directory)).body;
    const { newNonce = '', newAccount = '' } = this.#directory;
    await this.#send('HEAD', newNonce);
    const { binding } = this.#server;
    const payload = {
      termsOfServiceAgreed: true,
      ...(binding !== undefined && { externalAccountBinding: this.#bound(binding, newAccount) }),
    };
    this.#account = (await this.#post(newAccount, payload)).location;
  }

  /** From a new order to the certificate. */
  async order({ name, csr }: Wish): Promise<string> {
    const identifiers = [{ type: 'dns', value: name }];
    const { location, body: order } = await this.#post(this.#directory.newOrder ?? '', { identifiers });
    if (order.status === 'pending') for (const url of order.authorizations ?? []) await this.#prove(url);
    let { body: done } = await this.#post(order.finalize ?? '', { csr });
    while (done.status === 'processing') ({ body: done } = await this.#post(location, undefined));
    const { body } = await this.#post(done.certificate ?? '', undefined);
    return body.text ?? '';
  }

  close(): void {
    this.#agent.destroy();
  }

  async #prove(url: string): Promise<void> {
    const { body: authorization } = await this.#post(url, undefined);
    const challenge = authorization.challenges?.find(({ type }) => type === 'http-01');
    if (authorization.status === 'valid' || challenge === undefined) return;
    this.#server.publish?.(challenge.token, `${challenge.token}.${this.#thumbprint}`);
    // Some servers validate before they answer.
    let { body } = await this.#post(challenge.url, {});
    while (body.status === 'pending' || body.status === 'processing')
      ({ body } = await this.#post(url, undefined));
    if (body.status !== 'valid') throw new Error(`the challenge is ${JSON.stringify(body)}`);
  }

  #bound({ kid, key }: NonNullable<AcmeServer['binding']>, url: string) {
    const head = base64({ alg: 'HS256', kid, url });
    const payload = base64(this.#jwk);
    const signature = createHmac('sha256', key).update(`${head}.${payload}`).digest('base64url');
    return { protected: head, payload, signature };
  }

  /** Posts a signed request; without a payload, it reads (RFC 8555 §6.3). */
  #post(url: string, content: object | undefined): Promise<Answer> {
    const identity = this.#account === '' ? { jwk: this.#jwk } : { kid: this.#account };
    const head = base64({ alg: 'ES256', nonce: this.#nonce, url, ...identity });
    const payload = content === undefined ? '' : base64(content);
    const key = { key: this.#key, dsaEncoding: 'ieee-p1363' } as const;
    const signature = sign('sha256', Buffer.from(`${head}.${payload}`), key).toString('base64url');
    return this.#send('POST', url, JSON.stringify({ protected: head, payload, signature }));
  }

  async #send(method: string, url: string, body?: string): Promise<Answer> {
    this.requests += 1;
    const headers = body === undefined ? {} : { 'Content-Type': 'application/jose+json' };
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const sent = request(url, { method, headers, agent: this.#agent }, async (response) => {
      const { headers: answered, statusCode: status = 0 } = response;
      try {
        this.#nonce = String(answered['replay-nonce'] ?? this.#nonce);
        const isJson = /json/.test(answered['content-type'] ?? '') && method !== 'HEAD';
        const read = isJson ? ((await json(response)) as Body) : { text: await textOf(response) };
        if (status >= 400) throw new Error(`${url}: status ${status}: ${JSON.stringify(read)}`);
        resolve({ status, location: answered.location ?? '', body: read });
      } catch (error) {
        reject(error);
      }
    });
    sent.once('error', reject);
    sent.end(body);
    return promise;
  }
}

async function textOf(response: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return Buffer.concat(parts).toString();
}

const subjectAltName = objectIdentifier('2.5.29.17');
const extensionRequest = objectIdentifier('1.2.840.113549.1.9.14');
const ecdsaWithSha256 = sequence(objectIdentifier('1.2.840.10045.4.3.2'));

/** Makes CSRs with one P-256 key, whose proof of possession servers verify like that of any other. */
export function wishes(): (name: string) => Wish {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return (name) => {
    const names = extension(subjectAltName, sequence(implicit(2, Buffer.from(name))));
    const attributes = explicit(0, sequence(extensionRequest, setOf(sequence(names))));
    const info = sequence(integer(0), sequence(), spki, attributes);
    const csr = sequence(info, ecdsaWithSha256, bitString(sign('sha256', info, privateKey)));
    return { name, csr: csr.toString('base64url') };
  };
}
