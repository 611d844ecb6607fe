/**
 * Orders of the nodes at a CA that counts them: whichever node is killed or paused, each certificate that the CA issued
 * gets into the vault, and the vault orders none twice.
 */
import { X509Certificate } from 'node:crypto';
import type { ScriptedAcme } from '../harness/ca/scripted-acme.ts';
import { type Place, runCommand } from './running-vault.ts';
import { withRows } from './server-truths.ts';

const issuer = 'public';

/** The certificate that is ordered at the CA, and what else its creation says. */
export const ordered = ['ordered', { issuer }] as const;

export class NodeOrders {
  readonly #ca: ScriptedAcme;
  readonly #database: string;
  /** The number of comparisons. */
  compared = 0;

  /** `database` leads to the server that takes writes. */
  constructor(ca: ScriptedAcme, database: string) {
    this.#ca = ca;
    this.#database = database;
  }

  /** Adds the CA to a vault. */
  async addIssuer(place: Place): Promise<void> {
    const { directoryUrl } = this.#ca;
    const args = ['issuer', 'add', '--name', issuer, '--directory', directoryUrl, '--accept-terms'];
    const { code, stderr } = await runCommand(place, args);
    if (code !== 0) throw new Error(`vault ${args.join(' ')}: ${stderr}`);
  }

  /** Certificates that the CA issued. */
  get issued(): number {
    return this.#fingerprints().length;
  }

  /** Orders without a certificate, which a node placed and could not record before it was killed. */
  get lost(): number {
    return this.#ca.state.orders.size - this.issued;
  }

  /** The broken promises. With `everything`, no renewal is open any more. */
  async broken({ everything }: { readonly everything: boolean }): Promise<string[]> {
    const sql = `select v.fingerprint_sha256 from certificate_versions v
      join certificates c on c.id = v.certificate_id where c.name = '${ordered[0]}'`;
    const rows = await withRows(this.#database, (select) => select(sql));
    const stored = rows.map((row) => String(row.fingerprint_sha256));
    // Later than what is stored: the vault goes on.
    const issued = this.#fingerprints();
    const unknown = stored.filter((print) => !issued.includes(print));
    const missing = issued.filter((print) => !stored.includes(print));
    this.compared += stored.length + issued.length;
    const broken = unknown.map((print) => `the CA did not issue the stored certificate ${print}`);
    if (everything && issued.length === 0) broken.push('the CA issued nothing');
    if (everything && missing.length > 0)
      broken.push(`the CA issued ${missing.length} certificates that are not stored: ${missing}`);
    return broken;
  }

  /** SHA-256 fingerprints of what the CA issued, as the database has them. */
  #fingerprints(): string[] {
    return [...this.#ca.state.orders.values()].flatMap(({ leaf }) =>
      leaf === undefined ? [] : [fingerprint(leaf)],
    );
  }
}

function fingerprint(leaf: Buffer): string {
  return new X509Certificate(leaf).fingerprint256.replaceAll(':', '').toLowerCase();
}
