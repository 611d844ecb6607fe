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

  /** Whether this process, or the one that makes backups, has looked since the start. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The backup that was set aside last, until one counts again. Only the process that makes backups knows it. */
  get setAside(): SetAside | undefined {
    return this.#setAside;
  }

  /** `setAside` where it was written, but holds much less than the one before; an earlier one stays until one counts. */
  failed(setAside = this.#setAside): void {
    this.#isKnown = true;
    this.#isFailing = true;
    this.#setAside = setAside;
  }

  succeeded(): void {
    this.#isKnown = true;
    this.#isFailing = false;
    this.#setAside = undefined;
  }
}
