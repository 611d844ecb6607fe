/** A command line that is not valid: shown with a hint, exit code 2. */
export class Misuse extends Error {
  readonly hint: string;

  constructor(message: string, hint: string) {
    super(message);
    this.name = 'Misuse';
    this.hint = hint;
  }
}
