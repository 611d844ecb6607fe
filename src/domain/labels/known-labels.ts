/**
 * The labels of certificates for authorization, cached until something changes. Labels that were written into the
 * database file by others count as none.
 */
import { parseCertName } from '../../base/cert-name.ts';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import type { Log } from '../../base/log.ts';
import { certificateLabelsFit, type LabelledRow } from '../../db/audit/label-tags.ts';
import type { Recorded } from '../../db/audit/row-records.ts';
import { findLabels } from '../../db/tables/certificates/certificate-labels.ts';
import { FreshCache, type Freshness } from '../cache/freshness.ts';
import type { LoggedContext } from '../contexts.ts';
import { labelsOf } from './certificate-labelling.ts';

const cachedCertificates = 10_000;

const none: readonly string[] = [];

export class KnownLabels {
  readonly #vault: LoggedContext;
  readonly #labelled: FreshCache<string, readonly string[]>;
  /** Names without labels, most of which may not exist: they must not evict the others. */
  readonly #others: FreshCache<string, true>;

  constructor(vault: LoggedContext & { readonly freshness: Freshness }) {
    this.#vault = vault;
    this.#labelled = new FreshCache(vault.freshness, cachedCertificates);
    this.#others = new FreshCache(vault.freshness, cachedCertificates);
  }

  /** The labels of the certificate of this name, which may be any text; none if it does not exist. */
  of(name: string): readonly string[] | Promise<readonly string[]> {
    const known = this.#labelled.peek(name);
    if (known !== undefined) return known;
    if (this.#others.peek(name) === true || parseCertName(name) === undefined) return none;
    return this.#load(name);
  }

  async #load(name: string): Promise<readonly string[]> {
    const { db, log } = this.#vault;
    const load = async () => {
      const row = await findLabels(db.reader, name);
      const labels = row === undefined ? none : authenticLabels(requireIntegrity(db), log, row);
      return labels.length === 0 ? undefined : labels;
    };
    const labels = await this.#labelled.get(name, load);
    if (labels === undefined) await this.#others.get(name, async () => true);
    return labels ?? none;
  }
}

/** The labels of a row; none, and an error in the log, if the vault did not write them. */
export function authenticLabels(
  integrity: Integrity,
  log: Log,
  row: LabelledRow & Recorded,
): readonly string[] {
  if (certificateLabelsFit(integrity, row)) return labelsOf(row);
  log.error({ certificate: row.name }, 'labels ignored: the certificate row was modified outside the vault');
  return none;
}
