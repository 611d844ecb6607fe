/**
 * Verifies with the executable that the audit log is complete and matches every printed checkpoint.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Facts } from './ledger.ts';
import { type Place, runCommand } from './running-vault.ts';

export class AuditTruth {
  readonly #folder: string;
  readonly #files: string[] = [];
  #verified = 0;
  /** The number of verified checkpoints and logs. */
  compared = 0;

  /** `folder` stores the checkpoints as files. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Verifies the whole log of the vault and returns the broken promises. With `everything` it checks all checkpoints,
   * else only new ones, because the chain covers the older ones.
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
