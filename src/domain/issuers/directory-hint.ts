/** What an operator can do if the vault cannot read the directory of a CA. */
import { AcmeError } from '../../acme/acme-error.ts';
import type { OperatorError } from '../../base/operator-error.ts';
import { OutboundError } from '../../net/outbound-http.ts';

/** The hint of an error from `addIssuer` or `updateIssuer`, which names the option of the command line to check. */
export function directoryHint(error: OperatorError, hasCaFile: boolean): string | undefined {
  if (!(error instanceof AcmeError) || error.kind === 'aborted') return error.hint;
  const { kind, message, cause } = error;
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
