/** Whether the last scheduled backup failed, as far as this process knows: readiness tells of it. */

export class BackupHealth {
  #isFailing = false;

  get isFailing(): boolean {
    return this.#isFailing;
  }

  failed(): void {
    this.#isFailing = true;
  }

  succeeded(): void {
    this.#isFailing = false;
  }
}
