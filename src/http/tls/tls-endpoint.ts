/**
 * The HTTPS endpoint of the vault: the served certificate, and its replacement without dropping connections. Session
 * tickets get new keys every hour.
 */
import { hash, hkdfSync } from 'node:crypto';
import type { Server } from 'node:https';
import { hour, second } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { World } from '../../base/world.ts';
import { announcedAuthorities } from '../../domain/client-certificates/announced-authorities.ts';
import type { LoggedContext } from '../../domain/contexts.ts';
import { secureOptions, type TlsIdentity } from './tls-identity.ts';
import type { TlsSource } from './tls-source.ts';

/** The HTTPS certificate, for administrators. */
export type TlsFacts = {
  readonly source: 'certificate' | 'files';
  readonly certificate: string | null;
  readonly publicly_trusted: boolean;
  readonly pin: string;
};

const lookAgainAfter = second;
/** A ticket is valid for the lifetime of one key: a stolen key can decrypt only sessions resumed within this time. */
const ticketLife = hour;

/** Size of the random seed in bytes. */
const ticketSeedSize = 32;

/** A name, an HMAC key and an encryption key, as in node:tls. */
const ticketKeysSize = 48;

/** The current seed of ticket keys: other bytes every hour. */
type TicketSeed = () => Buffer;

function ownTicketSeed(world: World): TicketSeed {
  let seed = world.randomBytes(ticketSeedSize);
  let since = world.now();
  return () => {
    const now = world.now();
    // Also if the clock was set back.
    if (Math.abs(now - since) >= ticketLife) {
      seed = world.randomBytes(ticketSeedSize);
      since = now;
    }
    return seed;
  };
}

export class TlsEndpoint {
  readonly #vault: LoggedContext;
  readonly #source: TlsSource;
  #identity: TlsIdentity;
  /** The CAs whose certificates clients are asked for; empty to ask for none. */
  #authorities: readonly string[] = [];
  #generation = -1;
  readonly #ticketSeed: TicketSeed;
  #usedSeed: Buffer | undefined;

  private constructor(vault: LoggedContext, source: TlsSource, identity: TlsIdentity) {
    this.#vault = vault;
    this.#source = source;
    this.#identity = identity;
    this.#ticketSeed = ownTicketSeed(vault.world);
  }

  /** Starts with a certificate. Throws OperatorError if the source has none. */
  static async open(vault: LoggedContext, source: TlsSource): Promise<TlsEndpoint> {
    const endpoint = new TlsEndpoint(vault, source, await source.begin());
    await endpoint.#readAuthorities();
    endpoint.#announce();
    return endpoint;
  }

  /** The served identity. */
  get identity(): TlsIdentity {
    return this.#identity;
  }

  get facts(): TlsFacts {
    const { kind, certificate } = this.#source;
    const { publiclyTrusted, pin } = this.#identity;
    return { source: kind, certificate, publicly_trusted: publiclyTrusted, pin };
  }

  /** Options of a server with the current certificate; `keepCurrent` updates it. */
  options() {
    return {
      ...secureOptions(this.#identity),
      sessionTimeout: ticketLife / second,
      ticketKeys: this.#ticketKeys(),
      ...(this.#authorities.length > 0 && { ca: [...this.#authorities] }),
      ...this.#certificateRequest(),
    };
  }

  /** Passes new certificates and ticket keys to the server until `signal` is aborted; never rejects. */
  async keepCurrent(server: Server, signal: AbortSignal): Promise<void> {
    const certificate = this.#loggedOnce(
      () => this.#updateCertificate(server),
      'failed to reload the HTTPS certificate; keeping the current one',
    );
    // Apart, because certificates from files change without the database.
    const authorities = this.#loggedOnce(
      () => this.#updateAuthorities(server),
      'failed to read the CAs of client certificates; announcing the current ones',
    );
    for (;;) {
      await this.#vault.world.sleep(lookAgainAfter, signal);
      if (signal.aborted) return;
      await certificate();
      await authorities();
    }
  }

  /** The work as one that never rejects and logs the first of several failures in a row. */
  #loggedOnce(work: () => Promise<void>, failure: string): () => Promise<void> {
    let isFailing = false;
    return async () => {
      try {
        await work();
        isFailing = false;
      } catch (error) {
        if (!isFailing) this.#vault.log.error({ err: error }, failure);
        isFailing = true;
      }
    };
  }

  async #updateCertificate(server: Server): Promise<void> {
    if (this.#ticketSeed() !== this.#usedSeed) server.setTicketKeys(this.#ticketKeys());
    const next = await this.#source.look();
    if (next === undefined) return;
    this.#identity = next;
    // New ticket keys too: a resumed session would keep the previous certificate.
    server.setSecureContext(this.options());
    this.#announce();
  }

  async #updateAuthorities(server: Server): Promise<void> {
    if (!(await this.#readAuthorities())) return;
    // New ticket keys too: a resumed session would keep the client's certificate, or its absence.
    server.setSecureContext(this.options());
    // Node reads these for each connection, and has no function that sets them.
    Object.assign(server, this.#certificateRequest());
  }

  /** Whether clients are asked for a certificate. Never rejected by TLS: only keys decide who needs which. */
  #certificateRequest() {
    return { requestCert: this.#authorities.length > 0, rejectUnauthorized: false };
  }

  /** Reads the CAs to announce, if anything has changed. Returns whether they are others. */
  async #readAuthorities(): Promise<boolean> {
    const generation = await this.#vault.db.generation();
    if (generation === this.#generation) return false;
    const authorities = await announcedAuthorities(this.#vault);
    const isOther = authorities.join() !== this.#authorities.join();
    this.#authorities = authorities;
    this.#generation = generation;
    return isOther;
  }

  #ticketKeys(): Buffer {
    this.#usedSeed = this.#ticketSeed();
    const asked = this.#authorities.length === 0 ? '' : ` ${hash('sha256', this.#authorities.join())}`;
    return ticketKeysFrom(this.#usedSeed, `${this.#identity.leaf.fingerprint256}${asked}`);
  }

  #announce(): void {
    const { world, log } = this.#vault;
    const { origin, notAfter, pin, isPrivate, publiclyTrusted } = this.#identity;
    const fields = {
      ...origin,
      not_after: formatTimestamp(notAfter),
      pin,
      publicly_trusted: publiclyTrusted,
    };
    if (notAfter <= world.now()) log.warn(fields, 'the HTTPS certificate has expired');
    else if (isPrivate)
      log.info(fields, 'serving HTTPS with a certificate of the private CA; clients can pin its public key');
    else log.info(fields, 'serving HTTPS');
  }
}

/**
 * Different keys for each certificate and request for a client certificate: otherwise a resumed session would keep the
 * previous ones.
 */
function ticketKeysFrom(seed: Uint8Array, context: string): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, '', `session tickets ${context}`, ticketKeysSize));
}
