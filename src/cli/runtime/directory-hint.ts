/** Hints for `vault issuer` when the ACME directory of a CA cannot be fetched. */
import { AcmeError } from '../../acme/acme-error.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { OutboundError } from '../../net/outbound-http.ts';

/** Runs `work`; rethrows an AcmeError with a hint that names the option to check. */
export async function withDirectoryHint(work: () => Promise<void>, hasCaFile: boolean): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof AcmeError) || error.kind === 'aborted') throw error;
    throw new OperatorError(error.message, { hint: hintFor(error, hasCaFile), cause: error });
  }
}

function hintFor({ kind, message, cause }: AcmeError, hasCaFile: boolean): string {
  if (cause instanceof OutboundError && cause.reason === 'untrusted') {
    return hasCaFile
      ? 'No certificate in --ca-file issued it. Use the root of the chain that this server sends.'
      : 'If the CA has its own root, pass it with --ca-file.';
  }
  if (cause instanceof OutboundError && cause.reason === 'refused') {
    return 'If the CA is yours, add its address to allow_outbound in vault.yaml or to CERTVAULT_ALLOW_OUTBOUND, also for "vault serve".';
  }
  if (kind === 'network' || kind === 'timeout') {
    return 'Check the address, the firewall and, behind a proxy, HTTPS_PROXY and NO_PROXY.';
  }
  if (/must use https/.test(message)) return 'Use an https:// URL in --directory.';
  return 'Check --directory: use the full ACME directory URL from the documentation of the CA.';
}
