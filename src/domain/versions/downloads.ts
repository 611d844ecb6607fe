/**
 * Downloads of artifacts. The audit event of a download is durable before its first byte is sent. Database rows are
 * cached per version; a private key is unsealed only for its download.
 */

import { type CertName, parseCertName } from '../../base/cert-name.ts';
import { Problem } from '../../base/problem.ts';
import { sealedSize } from '../../crypto/secrets/sealing.ts';
import {
  type CertificateSummaryRow,
  findCertificateSummary,
} from '../../db/tables/certificates/certificate-summaries.ts';
import { findCurrentVersion, type HandedOutRow } from '../../db/tables/certificates/certificate-versions.ts';
import type { Actor } from '../audit/audit.ts';
import type { AuditBatch } from '../audit/audit-batch.ts';
import { boundedCache } from '../cache/bounded-cache.ts';
import { FreshCache, type Freshness } from '../cache/freshness.ts';
import type { DatabaseContext, KeyringContext } from '../contexts.ts';
import { type ArtifactName, artifacts, etagOf, publicBody } from './artifacts.ts';
import type { FileName } from './formats.ts';
import { holdsKey, openVersionKey, requireVersion } from './versions.ts';

/** An artifact ready for download. Nothing has been unsealed or recorded yet. */
export type Artifact = {
  readonly name: CertName;
  readonly file: ArtifactName;
  readonly version: number;
  readonly etag: string;
  /** Bytes of the body. */
  readonly size: number;
  readonly isSecret: boolean;
  /** The body, PEM in ASCII; unseals the private key. */
  readonly read: () => string;
};

type Served = {
  readonly id: number;
  readonly name: CertName;
  readonly current: HandedOutRow | undefined;
};

/** Cache sizes: a served certificate takes about 4 kB, and so does its metadata. */
const maxCachedCertificates = 3000;
const maxCachedSummaries = 1000;

/** Certificates of one CA share their chain, which is cached once. */
const maxCachedChains = 100;

/** Records each download before it happens, and counts it. */
type DownloadContext = DatabaseContext &
  KeyringContext & {
    readonly audit: AuditBatch;
    readonly freshness: Freshness;
    readonly meter: { readonly downloaded: (file: FileName) => void };
  };

export class Downloads {
  readonly #vault: DownloadContext;
  readonly #served: FreshCache<string, Served>;
  readonly #summaries: FreshCache<string, CertificateSummaryRow>;
  readonly #chains = boundedCache<string, string>(maxCachedChains);

  constructor(vault: DownloadContext) {
    this.#vault = vault;
    this.#served = new FreshCache(vault.freshness, maxCachedCertificates);
    this.#summaries = new FreshCache(vault.freshness, maxCachedSummaries);
  }

  /** Metadata of a certificate; synchronous if cached. Throws `certificate_not_found`. */
  summary(text: string): CertificateSummaryRow | Promise<CertificateSummaryRow> {
    return this.#summaries.peek(text) ?? this.#loadSummary(nameOf(text));
  }

  /**
   * An artifact of the current version, or of version `number`; synchronous if cached. Throws `certificate_not_found`,
   * `version_not_found`, `no_current_version`, and `private_key_not_held` for the private key that the client holds.
   */
  find(text: string, file: ArtifactName, number: number | undefined): Artifact | Promise<Artifact> {
    const served = this.#served.peek(text);
    if (served?.current === undefined || (number !== undefined && number !== served.current.version)) {
      return this.#query(text, file, number);
    }
    return this.#artifact(served.name, file, served.current);
  }

  async #query(text: string, file: ArtifactName, number: number | undefined): Promise<Artifact> {
    const { name, row } = await this.version(text, number);
    return this.#artifact(name, file, row);
  }

  /** The downloadable part of the current version, or of version `number`. Throws like `find`. */
  async version(
    text: string,
    number: number | undefined,
  ): Promise<{ readonly name: CertName; readonly row: HandedOutRow }> {
    const name = nameOf(text);
    const { id, current } = found(await this.#load(name));
    if (current !== undefined && (number === undefined || number === current.version)) {
      return { name, row: current };
    }
    const certificate = { id, name, current_version: null };
    return { name, row: await requireVersion(this.#vault.db.reader, certificate, number) };
  }

  /**
   * The body of an artifact, after its audit event is durable. Throws if the event cannot be recorded, before any byte
   * is returned.
   */
  async handOut(artifact: Artifact, actor: Actor): Promise<string> {
    const body = artifact.read();
    await this.record(artifact, actor);
    return body;
  }

  /** Records and counts a download before its first byte is sent. Throws if the event cannot be recorded. */
  async record(
    { name, file, version }: Pick<Artifact, 'name' | 'version'> & { readonly file: FileName },
    actor: Actor,
  ): Promise<void> {
    await this.#vault.audit.append({
      actor,
      action: 'certificate.download',
      resource: `certificate:${name}`,
      detail: { artifact: file, version },
    });
    this.#vault.meter.downloaded(file);
  }

  async #loadSummary(name: CertName): Promise<CertificateSummaryRow> {
    return found(await this.#summaries.get(name, () => findCertificateSummary(this.#vault.db.reader, name)));
  }

  #load(name: CertName): Promise<Served | undefined> {
    return this.#served.get(name, async () => {
      const served = await findCurrentVersion(this.#vault.db.reader, name);
      if (served?.current === undefined) return served && { ...served, name };
      const { chain_pem } = served.current;
      const chain = this.#chains.get(chain_pem) ?? chain_pem;
      this.#chains.set(chain, chain);
      return { id: served.id, name, current: { ...served.current, chain_pem: chain } };
    });
  }

  #artifact(name: CertName, file: ArtifactName, row: HandedOutRow): Artifact {
    const { content } = artifacts[file];
    const common = { name, file, version: row.version, etag: etagOf(row, content) };
    if (content === 'private_key') {
      if (!holdsKey(row)) throw new Problem('private_key_not_held');
      const read = () => openVersionKey(this.#vault, row).expose().toString('latin1');
      return { ...common, size: sealedSize(row.sealed_private_key), isSecret: true, read };
    }
    const body = publicBody(row, content);
    return { ...common, size: body.length, isSecret: false, read: () => body };
  }
}

function nameOf(text: string): CertName {
  return found(parseCertName(text));
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Problem('certificate_not_found');
  return value;
}
