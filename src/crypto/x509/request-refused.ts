/** A certificate signing request that is not accepted. The message continues "the CSR …". */
export class RequestRefused extends Error {
  /** Whether its key is the reason, rather than the rest of it. */
  readonly isAboutKey: boolean;

  constructor(message: string, about: 'key' | 'request' = 'request') {
    super(message);
    this.name = 'RequestRefused';
    this.isAboutKey = about === 'key';
  }
}
