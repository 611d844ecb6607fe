/** A command that was not written as it must be: shown with a hint, exit code 2. */
export class Misuse extends Error {
  readonly hint: string;

  constructor(message: string, hint: string) {
    super(message);
    this.name = 'Misuse';
    this.hint = hint;
  }
}
