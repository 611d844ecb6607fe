/**
 * Handing out: which bytes an artifact has, and the rule that nobody gets them before the audit log durably says so.
 * What is computed once per version is remembered; the private key is opened for each download and for nothing else.
 */
import { type CertName, parseCertName } from '../base/cert-name.ts';
import { Problem } from '../base/problem.ts';
import { sealedSize } from '../crypto/sealing.ts';
import type { CertificateVersionRow } from '../db/certificate-versions.ts';
import { type CertificateSummaryRow, findCertificateSummary } from '../db/certificates.ts';
import { type ArtifactName, artifacts, etagOf, publicBody } from './artifacts.ts';
import type { Actor } from './audit.ts';
import { FreshCache } from './freshness.ts';
import type { Vault } from './vault.ts';
import { openVersionKey, requireVersion } from './versions.ts';

/** An artifact that could be handed out. Nothing has been opened or recorded yet. */
export type Artifact = {
  readonly name: CertName;
  readonly file: ArtifactName;
  readonly version: number;
  readonly etag: string;
  /** Bytes of the body. */
  readonly size: number;
  readonly isSecret: boolean;
  /** The body itself, PEM in ASCII; opens the private key. */
  readonly read: () => string;
};

type Served = {
  readonly summary: CertificateSummaryRow;
  /** Filled at the first download of the current version. */
  current: CertificateVersionRow | undefined;
  readonly bodies: Map<ArtifactName, string>;
};

/** Bounds the memory: a served certificate takes about 15 kB. */
const rememberedCertificates = 2000;

export class Downloads {
  readonly #vault: Vault;
  readonly #served: FreshCache<CertName, Served>;

  constructor(vault: Vault) {
    this.#vault = vault;
    this.#served = new FreshCache(vault.freshness, rememberedCertificates);
  }

  /** Metadata of a certificate. Throws `certificate_not_found`. */
  async summary(name: string): Promise<CertificateSummaryRow> {
    return (await this.#serve(name)).summary;
  }

  /**
   * An artifact of the current version, or of version `number`. Throws `certificate_not_found`, `version_not_found`
   * and `no_current_version`.
   */
  async find(name: string, file: ArtifactName, number: number | undefined): Promise<Artifact> {
    const served = await this.#serve(name);
    const isCurrent = number === undefined || number === served.summary.current_version;
    if (!isCurrent) {
      const past = await requireVersion(this.#vault.db.reader, served.summary, number);
      return this.#artifact(served.summary.name as CertName, file, past, new Map());
    }
    served.current ??= await requireVersion(this.#vault.db.reader, served.summary, undefined);
    return this.#artifact(served.summary.name as CertName, file, served.current, served.bodies);
  }

  /**
   * The body of an artifact, once its audit event is durable. Throws whatever keeps the event from being recorded, and
   * then no byte has left.
   */
  async handOut(artifact: Artifact, actor: Actor): Promise<string> {
    const body = artifact.read();
    await this.#vault.audit.append({
      actor,
      action: 'certificate.download',
      resource: `certificate:${artifact.name}`,
      detail: { artifact: artifact.file, version: artifact.version },
    });
    this.#vault.meter.downloaded(artifact.file);
    return body;
  }

  async #serve(name: string): Promise<Served> {
    const certName = parseCertName(name);
    const served = certName && (await this.#served.get(certName, () => this.#load(certName)));
    if (served === undefined) throw new Problem('certificate_not_found');
    return served;
  }

  async #load(name: CertName): Promise<Served | undefined> {
    const summary = await findCertificateSummary(this.#vault.db.reader, name);
    return summary && { summary, current: undefined, bodies: new Map() };
  }

  #artifact(
    name: CertName,
    file: ArtifactName,
    row: CertificateVersionRow,
    bodies: Map<ArtifactName, string>,
  ): Artifact {
    const { content } = artifacts[file];
    const common = { name, file, version: row.version, etag: etagOf(row, content) };
    if (content === 'private_key') {
      const read = () => openVersionKey(this.#vault, row).expose().toString('latin1');
      return { ...common, size: sealedSize(row.sealed_private_key), isSecret: true, read };
    }
    const body = bodies.get(file) ?? publicBody(row, content);
    bodies.set(file, body);
    return { ...common, size: body.length, isSecret: false, read: () => body };
  }
}
