/**
 * The CRLs of the private CA: one for each CA certificate, stored in the database so that all processes serve the same.
 * A CRL is signed when it is requested and the stored one lacks a revocation or is a day old.
 */
import { createHash } from 'node:crypto';
import { day } from '../../base/duration.ts';
import { StorageError } from '../../base/storage-error.ts';
import { describeFileError } from '../../base/system-error.ts';
import { encodePem } from '../../crypto/pem.ts';
import type { Reader } from '../../db/database.ts';
import {
  findCaCertificateById,
  listCaCertificateIds,
  listIntermediates,
} from '../../db/tables/issuance/ca-certificates.ts';
import { type CrlHeadRow, findCrlHead, findSignedCrl } from '../../db/tables/issuance/crls.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import { boundedCache } from '../cache/bounded-cache.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import { holdsKey, issuingIntermediate, requireRoot } from './authorities.ts';
import { settingsOfCa } from './ca-settings.ts';
import { backdating, signCrl } from './crl-signing.ts';
import { localCa } from './local-ca.ts';

/** How old a served CRL is at most, unless the vault does not hold the key of its issuer. */
const resignAfter = day;

/** Intermediates are replaced every few years. A CRL of 100,000 entries takes 4 MB. */
const maxCachedCrls = 8;
const maxCachedCas = 4;

export type ServedCrl = {
  readonly number: number;
  /** DER. */
  readonly body: Buffer;
  readonly etag: string;
};

/** The CRLs as one process serves them. */
export class Crls {
  readonly #vault: SecretsContext & LogContext;
  readonly #remembered = boundedCache<number, ServedCrl>(maxCachedCrls);
  readonly #signing = new Map<number, Promise<void>>();
  readonly #joined = boundedCache<number, { readonly body: Buffer; readonly etag: string }>(maxCachedCas);

  constructor(vault: SecretsContext & LogContext) {
    this.#vault = vault;
  }

  /**
   * The CRL of the intermediate with which a private CA issues at present, by default the built-in one. Throws
   * StorageError if it cannot be stored.
   */
  async current(ca?: Pick<IssuerRow, 'id'>): Promise<ServedCrl> {
    const { reader } = this.#vault.db;
    const { id } = ca ?? (await localCa(reader));
    // Until the next issuance, there may be none with new constraints.
    const root = await requireRoot(reader, id);
    const row =
      (await issuingIntermediate(reader, root, await settingsOfCa(reader, id))) ??
      (await listIntermediates(reader, root))[0];
    if (row === undefined) throw new Error('the private CA has no intermediate');
    return this.#fresh(row.id);
  }

  /** The CRL of the CA certificate with this id; undefined if there is none. Throws like `current`. */
  async of(id: number): Promise<ServedCrl | undefined> {
    const row = await findCaCertificateById(this.#vault.db.reader, id);
    return row === undefined || row.is_external === 1 ? undefined : this.#fresh(row.id);
  }

  /**
   * The CRLs of the root and of all intermediates that have not expired, as PEM, for servers that want them in one
   * file.
   */
  async all(ca?: Pick<IssuerRow, 'id'>): Promise<{ readonly body: Buffer; readonly etag: string }> {
    const { db, world } = this.#vault;
    const issuer = ca ?? (await localCa(db.reader));
    const crls = [];
    for (const id of await listCaCertificateIds(db.reader, issuer.id, world.now())) {
      crls.push(await this.#fresh(id));
    }
    const etag = etagOf(Buffer.from(crls.map((crl) => crl.etag).join()));
    // Encoded once: that takes a while for long lists.
    const known = this.#joined.get(issuer.id);
    if (known?.etag === etag) return known;
    const texts = crls.map(({ body }) => encodePem('X509 CRL', body));
    const joined = { body: Buffer.from(texts.join('')), etag };
    this.#joined.set(issuer.id, joined);
    return joined;
  }

  /**
   * A CRL that has every revocation committed before the call, and is neither a day old nor expired; the last one that
   * was signed if the vault no longer holds the key.
   */
  async #fresh(id: number): Promise<ServedCrl> {
    const { db, world, log } = this.#vault;
    let head = await findCrlHead(db.reader, id);
    if (head !== undefined && head.number > 0 && !(await canSign(db.reader, id)))
      return this.#load(id, head.number);
    const wanted = head?.revocations ?? 0;
    while (head === undefined || head.number === 0 || head.covered < wanted || isDue(head, world.now())) {
      try {
        await this.#sign(id, head?.number ?? 0);
      } catch (error) {
        const isCurrent = head !== undefined && head.number > 0 && head.covered >= wanted;
        const mayBeServed = isCurrent && world.now() < (head?.next_update ?? 0);
        if (!(error instanceof StorageError) || !mayBeServed) throw error;
        log.warn({ ca_certificate: id, reason: describeFileError(error) }, 'failed to store a new CRL');
        break;
      }
      head = await findCrlHead(db.reader, id);
    }
    return this.#load(id, head?.number ?? 0);
  }

  async #load(id: number, number: number): Promise<ServedCrl> {
    const known = this.#remembered.get(id);
    if (known !== undefined && known.number >= number) return known;
    const row = await findSignedCrl(this.#vault.db.reader, id);
    if (row === undefined) throw new Error(`the CRL of the CA certificate ${id} is missing`);
    const served = { number: row.number, body: row.crl, etag: etagOf(row.crl) };
    this.#remembered.set(id, served);
    return served;
  }

  /**
   * Signs a CRL of what is revoked at present, in place of the one with the number `replaced`; callers at the same time
   * share one.
   */
  #sign(id: number, replaced: number): Promise<void> {
    const begun = this.#signing.get(id);
    if (begun !== undefined) return begun;
    const signing = signCrl(this.#vault, id, replaced).finally(() => this.#signing.delete(id));
    this.#signing.set(id, signing);
    return signing;
  }
}

function etagOf(content: Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`;
}

/** Whether the vault holds the key of a CA certificate. Without it, the stored CRL is the newest. */
async function canSign(reader: Reader, id: number): Promise<boolean> {
  const row = await findCaCertificateById(reader, id);
  return row !== undefined && holdsKey(row);
}

function isDue(head: CrlHeadRow, now: number): boolean {
  // Signed with a clock that was ahead, it would not be valid yet.
  if (head.signed_at - backdating > now) return true;
  return now >= Math.min(head.signed_at + resignAfter, head.next_update);
}
