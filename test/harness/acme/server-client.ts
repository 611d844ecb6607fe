/**
 * A small ACME client for tests of the ACME server, on jose alone: it shares nothing with the client of the vault, so
 * that neither hides a misunderstanding of the other. It retries nothing.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, FlattenedSign, type JWK } from 'jose';
import type { Identifier } from '../../../src/base/identifier.ts';
import { Secret } from '../../../src/base/secret.ts';
import { certificateRequest } from '../../../src/crypto/x509/certificate-request.ts';
import { createAcmeClientInput } from '../../../src/domain/acme-server/clients/acme-client-inputs.ts';
import { createAcmeClient } from '../../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';

export type KeyPair = { readonly alg: string; readonly privateKey: KeyObject; readonly jwk: JWK };

export type ExternalAccount = { readonly kid: string; readonly hmacKey: Buffer };

/** An ACME client of the vault, and what `vault acme-client create` prints for it. */
export async function makeAcmeClient(
  vault: Vault,
  others: Readonly<Record<string, unknown>> = {},
): Promise<ExternalAccount & { readonly id: number; readonly name: string }> {
  const name = `client-${vault.world.randomBytes(4).toString('hex')}`;
  const input = parseInput(createAcmeClientInput, { name, domains: ['*.example.test'], ...others });
  const { id, key } = await createAcmeClient(vault, localCli, input);
  return { id, name: input.name, kid: key.kid, hmacKey: Buffer.from(key.hmacKey.expose()) };
}

const generators = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

export async function newKey(alg: keyof typeof generators = 'ES256'): Promise<KeyPair> {
  const { privateKey, publicKey } = generators[alg]();
  return { alg, privateKey, jwk: await exportJWK(publicKey) };
}

/** A CSR in base64url for these names, with a new P-256 key unless one is given (PKCS#8). */
export async function csrFor(names: readonly string[], key = newPkcs8()): Promise<string> {
  const der = await certificateRequest(names as readonly Identifier[], new Secret(key));
  return der.toString('base64url');
}

/** A new P-256 key as PKCS#8 DER. */
export function newPkcs8(): Buffer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ format: 'der', type: 'pkcs8' });
}

/** The flattened JWS of these headers and payload. */
export async function sign(
  payload: unknown,
  header: Readonly<Record<string, unknown>>,
  key: KeyObject | Uint8Array,
): Promise<Record<string, unknown>> {
  const bytes = Buffer.from(payload === '' ? '' : JSON.stringify(payload));
  return { ...(await new FlattenedSign(bytes).setProtectedHeader(header as never).sign(key)) };
}

/** The binding of an account key to an ACME client (RFC 8555 §7.3.4). */
export function bindingFor(jwk: JWK, url: string, { kid, hmacKey }: ExternalAccount, alg = 'HS256') {
  return sign(jwk, { alg, kid, url }, new Uint8Array(hmacKey));
}

export type AcmeAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Tests read members of many kinds of resources.
  // biome-ignore lint/suspicious/noExplicitAny: it is the JSON of any answer.
  readonly json: any;
};

type Directory = Readonly<
  Record<'newNonce' | 'newAccount' | 'newOrder' | 'revokeCert' | 'keyChange', string>
>;

export type SentOptions = {
  readonly nonce?: string | undefined;
  /** Headers in place of, or beside, the usual ones; undefined leaves one out. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Signs with the key of the header jwk in place of the account. */
  readonly withJwk?: boolean;
  readonly key?: KeyPair;
  readonly url?: string;
  readonly contentType?: string;
  /** Changes the signed body before it is sent. */
  readonly change?: (body: Record<string, unknown>) => unknown;
};

/** Called with each answer, as with a check of all answers. */
export type Watch = (answer: {
  method: string;
  target: string;
  status: number;
  headers: Headers;
  body: string;
}) => void;

export class AcmeTestClient {
  key: KeyPair;
  /** The URL of the account. */
  account: string | undefined;
  readonly directory: Directory;
  readonly #watch: Watch | undefined;
  /** The nonces of answers. */
  readonly nonces: string[] = [];

  private constructor(key: KeyPair, directory: Directory, watch: Watch | undefined) {
    this.key = key;
    this.directory = directory;
    this.#watch = watch;
  }

  /** A client of the directory of an issuer. */
  static async at(
    url: string,
    { issuer = 'local-ca', key, watch }: { issuer?: string; key?: KeyPair; watch?: Watch } = {},
  ): Promise<AcmeTestClient> {
    const response = await fetch(`${url}/acme/${issuer}/directory`);
    assert.equal(response.status, 200);
    return new AcmeTestClient(key ?? (await newKey()), (await response.json()) as Directory, watch);
  }

  /** With an account that belongs to this ACME client. */
  static async registered(
    url: string,
    external: ExternalAccount,
    options: { issuer?: string; key?: KeyPair; watch?: Watch } = {},
  ): Promise<AcmeTestClient> {
    const client = await AcmeTestClient.at(url, options);
    const answer = await client.register(external);
    assert.equal(answer.status, 201, answer.text);
    return client;
  }

  async register(
    external: ExternalAccount,
    others: Readonly<Record<string, unknown>> = {},
  ): Promise<AcmeAnswer> {
    const { newAccount } = this.directory;
    const externalAccountBinding = await bindingFor(this.key.jwk, newAccount, external);
    const answer = await this.post(
      newAccount,
      { termsOfServiceAgreed: true, externalAccountBinding, ...others },
      { withJwk: true },
    );
    if (answer.status < 300) this.account = answer.headers.get('Location') ?? undefined;
    return answer;
  }

  async nonce(): Promise<string> {
    const known = this.nonces.pop();
    if (known !== undefined) return known;
    const response = await fetch(this.directory.newNonce, { method: 'HEAD' });
    assert.equal(response.status, 200);
    const nonce = response.headers.get('Replay-Nonce');
    assert(nonce !== null);
    return nonce;
  }

  /** Sends a signed request; the payload `''` reads a resource. */
  async post(url: string, payload: unknown = '', options: SentOptions = {}): Promise<AcmeAnswer> {
    return this.send(options.url ?? url, await this.signed(url, payload, options), options.contentType);
  }

  /** The body of a signed request. */
  async signed(url: string, payload: unknown, options: SentOptions = {}): Promise<unknown> {
    const { key = this.key, header = {}, withJwk = false, change } = options;
    const nonce = 'nonce' in options ? options.nonce : await this.nonce();
    const who = withJwk ? { jwk: key.jwk } : { kid: this.account };
    const body = await sign(payload, { alg: key.alg, nonce, url, ...who, ...header }, key.privateKey);
    return change === undefined ? body : change(body);
  }

  /** Sends a body, as it is if it is a text. */
  async send(url: string, body: unknown, contentType = 'application/jose+json'): Promise<AcmeAnswer> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': contentType },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const { status, headers } = response;
    const text = await response.text();
    const { pathname, search } = new URL(url);
    this.#watch?.({ method: 'POST', target: `${pathname}${search}`, status, headers, body: text });
    const nonce = headers.get('Replay-Nonce');
    if (nonce !== null) this.nonces.push(nonce);
    const isJson = /json$/.test(headers.get('Content-Type') ?? '');
    return { status, headers, text, json: isJson ? JSON.parse(text) : undefined };
  }

  /** Orders a certificate for these names and dates. */
  order(names: readonly string[], others: Readonly<Record<string, unknown>> = {}): Promise<AcmeAnswer> {
    const identifiers = names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value }));
    return this.post(this.directory.newOrder, { identifiers, ...others });
  }

  /** Orders, finalizes and downloads a certificate; returns its PEM and the URL of the order. */
  async issue(
    names: readonly string[],
    { key, ...others }: Readonly<Record<string, unknown>> & { readonly key?: Buffer } = {},
  ): Promise<{ readonly pem: string; readonly order: string; readonly certificate: string }> {
    const ordered = await this.order(names, others);
    assert.equal(ordered.status, 201, ordered.text);
    const csr = await csrFor(names, key);
    const finalized = await this.post(ordered.json.finalize, { csr });
    assert.equal(finalized.status, 200, finalized.text);
    assert.equal(finalized.json.status, 'valid');
    const { certificate } = finalized.json;
    const downloaded = await this.post(certificate);
    assert.equal(downloaded.status, 200, downloaded.text);
    return { pem: downloaded.text, order: ordered.headers.get('Location') ?? '', certificate };
  }

  thumbprint(): Promise<string> {
    return calculateJwkThumbprint(this.key.jwk);
  }
}

/** Throws unless the answer is this problem; returns its detail. */
export function assertProblem(answer: AcmeAnswer, type: string, status?: number): string {
  assert.equal(answer.json?.type, `urn:ietf:params:acme:error:${type}`, `${answer.status} ${answer.text}`);
  assert.equal(answer.headers.get('Content-Type'), 'application/problem+json');
  assert.equal(answer.json.status, answer.status);
  if (status !== undefined) assert.equal(answer.status, status, answer.text);
  return answer.json.detail;
}
