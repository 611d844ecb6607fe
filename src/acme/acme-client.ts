/**
 * The client of one CA: signed requests with nonces (RFC 8555 §6), and the directory of the CA. The requests themselves
 * are in the files for accounts, orders and certificates.
 */
import { hour, second } from '../base/duration.ts';
import type { AcmeAnswer } from './acme-answer.ts';
import { AcmeError } from './acme-error.ts';
import { AcmeTransport } from './acme-transport.ts';
import type { AcmeAccount, AcmeContext, AcmeDirectory, AcmeServer } from './acme-types.ts';
import { readDirectory } from './directory.ts';
import { isNonce, NoncePool } from './nonce-pool.ts';
import { type AcmePayload, type AcmeSigner, signRequest } from './signed-request.ts';

const directoryLifetime = hour;
/**
 * CAs with several servers sometimes reject valid nonces. Pebble rejects a share of them, each request at random: of a
 * third, one request in 20,000 is rejected nine times in a row, and an order of many names sends hundreds.
 */
const maxBadNonces = 20;
/** Pauses before a read request is retried over a new connection. */
const pauses = [second / 2, 2 * second];

type Post = {
  readonly url: string;
  readonly payload: AcmePayload;
  readonly signer: AcmeSigner;
  readonly accept?: string | undefined;
};

/** Not Found, Method Not Allowed, Gone. */
const gone: readonly number[] = [404, 405, 410];

/** How often a request has failed in ways that allow a retry. */
type Failures = { connection: number; nonce: number };

type Attempts = { readonly url: string; readonly failures: Failures; readonly repeats: readonly number[] };

export class AcmeClient {
  readonly context: AcmeContext;
  readonly #server: AcmeServer;
  readonly #nonces = new NoncePool();
  readonly #transport: AcmeTransport;
  #directory: { readonly value: AcmeDirectory; readonly until: number } | undefined;
  #fetching: Promise<AcmeDirectory> | undefined;

  /** Sends no request; one client serves all accounts and orders at a CA concurrently. */
  constructor(context: AcmeContext, server: AcmeServer) {
    this.context = context;
    this.#server = server;
    this.#transport = new AcmeTransport(context, server, this.#nonces);
  }

  /**
   * The directory, at most one hour old; downloaded again after a request failed for reasons other than a problem
   * document, and after one of its resources was not found. Concurrent callers share one download. Throws AcmeError.
   */
  async directory(signal: AbortSignal): Promise<AcmeDirectory> {
    for (;;) {
      if (signal.aborted) throw aborted();
      const known = this.#directory;
      if (known !== undefined && this.context.world.elapsed() < known.until) return known.value;
      if (this.#fetching === undefined) return this.#fetchDirectory(signal);
      const shared = await settled(this.#fetching, signal);
      if (shared instanceof AcmeError && shared.kind !== 'aborted') throw shared;
    }
  }

  /**
   * A signed POST (§6.2). It is sent once, because after a connection failure it is unknown whether the CA received it.
   * Only a rejected nonce is replaced, up to twenty times. Throws AcmeError.
   */
  async post(
    url: string,
    payload: AcmePayload,
    signer: AcmeSigner,
    signal: AbortSignal,
  ): Promise<AcmeAnswer> {
    return this.#signed({ url, payload, signer }, [], signal);
  }

  /** A signed read (§6.3); sent up to three times if the connection fails. Throws AcmeError. */
  async postAsGet(
    url: string,
    account: AcmeAccount,
    signal: AbortSignal,
    accept?: string,
  ): Promise<AcmeAnswer> {
    return this.#signed({ url, payload: '', signer: account, accept }, pauses, signal);
  }

  /** An unsigned read, of the directory or of renewal information. Retried like `postAsGet`. */
  async get(url: string, signal: AbortSignal): Promise<AcmeAnswer> {
    return this.#read('GET', url, signal);
  }

  async #signed(
    { url, payload, signer, accept }: Post,
    repeats: readonly number[],
    signal: AbortSignal,
  ): Promise<AcmeAnswer> {
    const failures = { connection: 0, nonce: 0 };
    this.#transport.check(url);
    for (;;) {
      const nonce = this.#nonces.take() ?? (await this.#newNonce(signal));
      const body = await signRequest(url, payload, signer, nonce);
      try {
        return await this.#transport.send({ method: 'POST', url, body, accept }, signal);
      } catch (error) {
        // The response that rejected a nonce contains the next one, which the pool returns first.
        await this.#mayRepeat(error, { url, failures, repeats }, signal);
      }
    }
  }

  async #read(method: 'GET' | 'HEAD', url: string, signal: AbortSignal): Promise<AcmeAnswer> {
    const failures = { connection: 0, nonce: 0 };
    for (;;) {
      try {
        return await this.#transport.send({ method, url }, signal);
      } catch (error) {
        await this.#mayRepeat(error, { url, failures, repeats: pauses }, signal);
      }
    }
  }

  /** Returns, after a pause, if the request may be retried; otherwise throws the error. */
  async #mayRepeat(error: unknown, { url, failures, repeats }: Attempts, signal: AbortSignal): Promise<void> {
    if (!(error instanceof AcmeError)) throw error;
    if (error.type === 'badNonce' && failures.nonce++ < maxBadNonces) return;
    const pause = isConnectionFailure(error) ? repeats[failures.connection++] : undefined;
    if (pause === undefined) {
      if (this.#isOutdated(error, url)) this.#directory = undefined;
      throw error;
    }
    await this.context.world.sleep(pause, signal);
    if (signal.aborted) throw aborted();
  }

  /** Whether the CA may have changed its directory: it does not answer as a CA, or its resources have moved. */
  #isOutdated({ kind, status }: AcmeError, url: string): boolean {
    if (kind !== 'problem') return kind !== 'aborted';
    const isListed = Object.values(this.#directory?.value ?? {}).includes(url);
    return isListed && status !== undefined && gone.includes(status);
  }

  async #newNonce(signal: AbortSignal): Promise<string> {
    const { newNonce } = await this.directory(signal);
    const { status, headers } = await this.#read('HEAD', newNonce, signal);
    const nonce = headers['replay-nonce'] ?? '';
    if (isNonce(nonce)) return nonce;
    const { host } = new URL(newNonce);
    throw new AcmeError('protocol', `${host} returned no nonce: the response has no Replay-Nonce header`, {
      status,
    });
  }

  async #fetchDirectory(signal: AbortSignal): Promise<AcmeDirectory> {
    this.#fetching = this.get(this.#server.directoryUrl, signal).then(readDirectory);
    try {
      const value = await this.#fetching;
      this.#directory = { value, until: this.context.world.elapsed() + directoryLifetime };
      return value;
    } finally {
      this.#fetching = undefined;
    }
  }
}

/** An untrusted certificate is not worth a retry. */
function isConnectionFailure({ kind, cause }: AcmeError): boolean {
  return kind === 'network' && (cause as { reason?: unknown } | undefined)?.reason !== 'untrusted';
}

/** The result of another caller's request, or undefined as soon as the signal is aborted; never rejects. */
async function settled(shared: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const stop = () => resolve(undefined);
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([shared.catch((error: unknown) => error), promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function aborted(): AcmeError {
  return new AcmeError('aborted', 'the request was canceled');
}
