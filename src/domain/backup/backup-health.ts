/** Whether the last scheduled backup failed, as far as this process knows: readiness tells of it. */

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

  /** The backup that was set aside last, until one counts again. Only the process that makes backups knows it. */
  get setAside(): SetAside | undefined {
    return this.#setAside;
  }

  /** After each look that succeeded; `setAside` where the last backup holds much less than the one before. */
  looked(setAside: SetAside | undefined): void {
    this.#isKnown = true;
    this.#isFailing = setAside !== undefined;
    this.#setAside = setAside;
  }

  failed(): void {
    this.#isFailing = true;
  }

  /** What the process that makes backups has told this one. */
  succeeded(): void {
    this.#isFailing = false;
  }
}
