/**
 * Whether the audit log is whole, and agrees with every checkpoint that was printed: asked of the executable itself, as
 * whoever suspects something would.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Facts } from './ledger.ts';
import { type Place, runCommand } from './running-vault.ts';

export class AuditTruth {
  readonly #folder: string;
  readonly #files: string[] = [];
  #verified = 0;
  /** How many checkpoints, and logs as a whole, were held against what was recorded. */
  compared = 0;

  /** `folder` is for the checkpoints, as files. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Walks the whole log of the vault; returns the promises that are broken. With `everything` it is held against all
   * checkpoints, else against those that are new since the last time: the chain binds the older ones to them.
   */
  async ofLog(
    place: Place,
    { checkpoints }: Pick<Facts, 'checkpoints'>,
    { everything }: { readonly everything: boolean },
  ): Promise<string[]> {
    mkdirSync(this.#folder, { recursive: true });
    for (const text of checkpoints.slice(this.#files.length)) {
      const path = join(this.#folder, `checkpoint-${this.#files.length}`);
      writeFileSync(path, `${text}\n`);
      this.#files.push(path);
    }
    const newest = this.#files.slice(everything ? 0 : this.#verified);
    const options = newest.flatMap((path) => ['--checkpoint', path]);
    const { code, stdout, stderr } = await runCommand(place, ['audit', 'verify', ...options]);
    this.compared += 1 + newest.length;
    this.#verified = this.#files.length;
    if (code === 0) return [];
    return [`the audit log does not verify: ${stdout}${stderr}`];
  }
}
