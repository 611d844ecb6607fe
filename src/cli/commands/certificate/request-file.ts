/** Reads the certificate signing request of `--csr`. */
import { requestText } from '../../../crypto/x509/signing-request.ts';
import { readInput } from '../../terminal/input-file.ts';
import type { Terminal } from '../../terminal/terminal.ts';

export const csrOption = {
  type: 'string',
  valueHint: 'FILE',
  description: 'a certificate signing request (PEM or DER); the client keeps the private key',
} as const;

/**
 * The request in a file, or in standard input for `-`, as PEM; what is wrong with it is found where the input is
 * parsed.
 */
export async function readRequestFile(path: string, terminal: Terminal): Promise<string> {
  return requestText(await readInput(path, terminal));
}
