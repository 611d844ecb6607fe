/** Whether the last scheduled backup failed, as far as this process knows; readiness reports it. */

/** A backup that holds much less than the one before, and what both hold. */
export type SetAside = {
  readonly path: string;
  readonly holds: BackupAmounts;
  readonly before: BackupAmounts;
};

export type BackupAmounts = { readonly certificates: number; readonly versions: number };

export class BackupHealth {
  #isFailing = false;
  #isKnown = false;
  #setAside: SetAside | undefined;

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Whether this process has read the backup directory since it started. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The last backup set aside, until one counts again. Known only in the process that makes backups. */
  get setAside(): SetAside | undefined {
    return this.#setAside;
  }

  /** Call after each successful check, with `setAside` if the last backup holds much less than the one before. */
  looked(setAside: SetAside | undefined): void {
    this.#isKnown = true;
    this.#isFailing = setAside !== undefined;
    this.#setAside = setAside;
  }

  failed(): void {
    this.#isFailing = true;
  }

  /** Clears the failure: another node may make backups now. */
  succeeded(): void {
    this.#isFailing = false;
  }
}
